// Actions that need no form: a button that sends at once, and the commands that do the same.
import { useState } from 'preact/hooks'
import { type Call, Copy, toastError } from '../../kit/index.ts'

type ActProps<T> = { call: Call<T>; text: string; quiet?: boolean; label?: string; done?(answer: T): void }

/** `label` is read out where the text alone does not say what it is about. */
export function Act<T>({ call, text, quiet, label, done }: ActProps<T>) {
  const [busy, wait] = useState(false)
  const send = () => {
    wait(true)
    call
      .send()
      .then(done, toastError)
      .finally(() => wait(false))
  }
  return (
    <button type="button" class={quiet ? 'quiet' : ''} disabled={busy} aria-label={label} onClick={send}>
      {text}
    </button>
  )
}

/** What the buttons of a screen send. */
export function ByCurl({ of }: { of: [string, Call<unknown>][] }) {
  return (
    <details class="by-curl">
      <summary class="soft">These actions by curl</summary>
      <dl>
        {of.map(([text, { curl }]) => (
          <div key={text}>
            <dt>{text}</dt>
            <dd class="copy">
              <code>{curl}</code>
              <Copy text={curl ?? ''} what={`command of “${text}”`} />
            </dd>
          </div>
        ))}
      </dl>
    </details>
  )
}
