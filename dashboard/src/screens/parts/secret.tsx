// A secret that is shown once, with a command that uses it.

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

/** The last step of a dialog: what was created, and its secret. */
export function SecretOnce({ secret, what, curl, of, children }: SecretProps) {
  return (
    <>
      <div class="body stack">
        {children}
        <div class="field">
          <b>The {what}, shown only once</b>
          <div class="secret">
            <code>{secret}</code>
            <Copy text={secret} what={what} />
          </div>
          <p class="soft">Copy it now.</p>
        </div>
      </div>
      {curl && <Curl text={curl} />}
      <footer>
        <button type="button" class="primary right" onClick={of.close}>
          I saved it
        </button>
      </footer>
    </>
  )
}
