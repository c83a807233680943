// A secret that is shown once, with what it is used by.

import type { ComponentChildren } from 'preact'
import { Copy, Curl, type DialogState } from '../../kit/index.ts'

type SecretProps = {
  secret: string
  what: string
  /** A command that uses it. */
  curl?: string
  of: Pick<DialogState, 'close'>
  children?: ComponentChildren
}

/** The last thing of a dialog: what was made, and its secret. */
export function SecretOnce({ secret, what, curl, of, children }: SecretProps) {
  return (
    <>
      <div class="body stack">
        {children}
        <div class="field">
          <b>The {what}, shown this once</b>
          <div class="secret">
            <code>{secret}</code>
            <Copy text={secret} what={what} />
          </div>
          <p class="soft">Copy it now. It is never shown again.</p>
        </div>
      </div>
      {curl && <Curl text={curl} />}
      <footer>
        <button type="button" class="primary right" onClick={of.close}>
          I have kept it
        </button>
      </footer>
    </>
  )
}
