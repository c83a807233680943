// Native dialogs, with the browser's focus and Escape handling; dangerous ones say what is lost.
import type { ComponentChildren } from 'preact'
import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { Call } from './calls.ts'
import { ProblemView } from './feedback.tsx'
import { Curl, CurlButton, Panel } from './panel.tsx'

export type DialogState = { isOpen: boolean; open(): void; close(): void }

export function useDialog(): DialogState {
  const [isOpen, setIsOpen] = useState(false)
  return { isOpen, open: () => setIsOpen(true), close: () => setIsOpen(false) }
}

type DialogProps = { of: DialogState; title: string; wide?: boolean; children: ComponentChildren }

/** Its content is mounted only while it is open, so that it starts fresh each time. */
export function Dialog(props: DialogProps) {
  return props.of.isOpen ? <OpenDialog {...props} /> : null
}

function OpenDialog({ of, title, wide = false, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null)
  const id = useId()
  // Runs before the effects of the content, which may focus a field.
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
  /** A name to type first, if the loss is permanent. */
  typed?: string
  done?(response: T): void
  /** What is lost, and how to restore it. */
  children: ComponentChildren
}

type ConfirmButtonProps<T> = Omit<ConfirmProps<T>, 'of'> & {
  text: string
  /** For screen readers, if the text alone doesn't name the object. */
  label?: string
  kind?: 'quiet' | 'danger' | 'quiet danger' | ''
}

/** A button that asks for confirmation. */
export function ConfirmButton<T>({ text, label, kind = 'quiet danger', ...confirm }: ConfirmButtonProps<T>) {
  const dialog = useDialog()
  return (
    <>
      <button type="button" class={kind} aria-label={label} onClick={dialog.open}>
        {text}
      </button>
      <Confirm of={dialog} {...confirm} />
    </>
  )
}

type DeletePanelProps<T> = Pick<ConfirmProps<T>, 'call' | 'done' | 'children'> & {
  /** The name to type first. */
  typed: string
  /** What the button says: "Delete the project". */
  title: string
  /** What is deleted with it. */
  hint: string
}

/** The last panel of a screen, which deletes its object after a confirmation. */
export function DeletePanel<T>({ title, hint, typed, ...confirm }: DeletePanelProps<T>) {
  const button = (
    <ConfirmButton text={title} kind="danger" action={title} title={`Delete ${typed}`} typed={typed} {...confirm} />
  )
  return (
    <Panel title={title} actions={button} pad>
      <p class="soft">{hint}</p>
    </Panel>
  )
}

/** Confirms something dangerous. */
export function Confirm<T>(props: ConfirmProps<T>) {
  return (
    <Dialog of={props.of} title={props.title}>
      <ConfirmForm {...props} />
    </Dialog>
  )
}

function ConfirmForm<T>({ of, call, action, typed, done, children }: ConfirmProps<T>) {
  const [text, setText] = useState('')
  const [error, setError] = useState<unknown>(null)
  const [busy, setBusy] = useState(false)
  const [curl, setCurl] = useState(false)
  const id = useId()
  async function confirm(event: Event): Promise<void> {
    event.preventDefault()
    if (busy || (typed !== undefined && text !== typed)) return
    setBusy(true)
    setError(null)
    try {
      const response = await call.send()
      of.close()
      done?.(response)
    } catch (failure) {
      setError(failure)
      setBusy(false)
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
              onInput={(event) => setText(event.currentTarget.value)}
            />
          </div>
        )}
        {error !== null && <ProblemView error={error} />}
      </div>
      <footer>
        {call.curl && <CurlButton open={curl} toggle={() => setCurl(!curl)} />}
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
