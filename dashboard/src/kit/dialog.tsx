// Dialogs: the browser's own, with its focus and its Escape; dangerous ones say what is lost.
import type { ComponentChildren } from 'preact'
import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { Call } from './calls.ts'
import { ProblemView } from './feedback.tsx'
import { Curl, CurlButton, Panel } from './panel.tsx'

export type DialogState = { isOpen: boolean; open(): void; close(): void }

export function useDialog(): DialogState {
  const [isOpen, set] = useState(false)
  return { isOpen, open: () => set(true), close: () => set(false) }
}

type DialogProps = { of: DialogState; title: string; wide?: boolean; children: ComponentChildren }

/** What is inside exists while it is open, so that it begins anew each time. */
export function Dialog(props: DialogProps) {
  return props.of.isOpen ? <OpenDialog {...props} /> : null
}

function OpenDialog({ of, title, wide = false, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null)
  const id = useId()
  // Before the effects of what is inside, which may focus a field.
  useLayoutEffect(() => {
    const dialog = element.current!
    const before = document.activeElement as HTMLElement | null
    dialog.showModal()
    return () => {
      dialog.close()
      if (before?.isConnected) before.focus()
    }
  }, [])
  return (
    <dialog ref={element} aria-labelledby={id} class={wide ? 'large' : ''} onClose={of.close}>
      <header>
        <h2 id={id}>{title}</h2>
        <button type="button" class="quiet right" onClick={of.close}>
          Close
        </button>
      </header>
      {children}
    </dialog>
  )
}

type ConfirmProps<T> = {
  of: DialogState
  title: string
  call: Call<T>
  /** What the button says: "Delete the project". */
  action: string
  /** The name to type first, where what is lost cannot be had again. */
  typed?: string
  done?(answer: T): void
  /** What is lost, and how to get it back. */
  children: ComponentChildren
}

type ConfirmButtonProps<T> = Omit<ConfirmProps<T>, 'of'> & {
  text: string
  /** Read out where the text alone does not say what it is about. */
  label?: string
  kind?: 'quiet' | 'danger' | 'quiet danger' | ''
}

/** A button that asks first. */
export function ConfirmButton<T>({ text, label, kind = 'quiet danger', ...asked }: ConfirmButtonProps<T>) {
  const asking = useDialog()
  return (
    <>
      <button type="button" class={kind} aria-label={label} onClick={asking.open}>
        {text}
      </button>
      <Confirm of={asking} {...asked} />
    </>
  )
}

type DeletePanelProps<T> = Pick<ConfirmProps<T>, 'call' | 'done' | 'children'> & {
  /** Its name, to be typed first. */
  typed: string
  /** What the button says: "Delete the project". */
  title: string
  /** What goes with it, in a sentence. */
  hint: string
}

/** The last panel of a screen: what is deleted with it, and the button that asks first. */
export function DeletePanel<T>({ title, hint, typed, ...asked }: DeletePanelProps<T>) {
  const button = (
    <ConfirmButton text={title} kind="danger" action={title} title={`Delete ${typed}`} typed={typed} {...asked} />
  )
  return (
    <Panel title={title} actions={button} pad>
      <p class="soft">{hint}</p>
    </Panel>
  )
}

/** Asks before something dangerous. */
export function Confirm<T>(props: ConfirmProps<T>) {
  return (
    <Dialog of={props.of} title={props.title}>
      <Asked {...props} />
    </Dialog>
  )
}

function Asked<T>({ of, call, action, typed, done, children }: ConfirmProps<T>) {
  const [text, type] = useState('')
  const [error, fail] = useState<unknown>(null)
  const [busy, wait] = useState(false)
  const [curl, showCurl] = useState(false)
  const id = useId()
  async function confirm(event: Event): Promise<void> {
    event.preventDefault()
    if (busy || (typed !== undefined && text !== typed)) return
    wait(true)
    fail(null)
    try {
      const answer = await call.send()
      of.close()
      done?.(answer)
    } catch (failure) {
      fail(failure)
      wait(false)
    }
  }
  return (
    <form onSubmit={confirm}>
      <div class="body stack">
        {children}
        {typed !== undefined && (
          <div class="field">
            <label for={id}>
              Type <code>{typed}</code> to confirm
            </label>
            <input
              id={id}
              value={text}
              autocomplete="off"
              spellcheck={false}
              onInput={(event) => type(event.currentTarget.value)}
            />
          </div>
        )}
        {error !== null && <ProblemView error={error} />}
      </div>
      <footer>
        {call.curl && <CurlButton open={curl} toggle={() => showCurl(!curl)} />}
        <div class="right row">
          <button type="button" onClick={of.close}>
            Keep it
          </button>
          <button type="submit" class="danger" disabled={busy || (typed !== undefined && text !== typed)}>
            {action}
          </button>
        </div>
      </footer>
      {curl && call.curl && <Curl text={call.curl} />}
    </form>
  )
}
