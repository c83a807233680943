// A refresh button. The console gets no events of other accounts, so lists about them say when they were loaded, and reload when the page becomes visible.
import { useEffect, useState } from 'preact/hooks'
import { Time } from '../../kit/index.ts'
import { serverNow } from '../../kit/session.ts'

export function Refresh({ of }: { of: { data: unknown; loading: boolean; refetch(): void } }) {
  const [at, setAt] = useState(serverNow())
  useEffect(() => setAt(serverNow()), [of.data])
  useEffect(() => {
    const back = () => {
      if (!document.hidden) of.refetch()
    }
    document.addEventListener('visibilitychange', back)
    return () => document.removeEventListener('visibilitychange', back)
  }, [of.refetch])
  return (
    <>
      <span class="soft">
        as of <Time at={at} form="clock" />
      </span>
      <button type="button" class="quiet" disabled={of.loading} onClick={of.refetch}>
        Refresh
      </button>
    </>
  )
}
