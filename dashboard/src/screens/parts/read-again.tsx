// Other accounts' events do not come here, so lists about them say when they were read, and are read when one comes back.
import { useEffect, useState } from 'preact/hooks'
import { Time } from '../../kit/index.ts'
import { serverNow } from '../../kit/session.ts'

export function ReadAgain({ of }: { of: { data: unknown; loading: boolean; refetch(): void } }) {
  const [at, set] = useState(serverNow())
  useEffect(() => set(serverNow()), [of.data])
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
        Read again
      </button>
    </>
  )
}
