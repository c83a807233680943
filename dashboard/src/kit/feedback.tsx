// What the console says back: problems, empty lists, short messages, and what is still being read.
import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { BerthError } from '../../../sdk/src/errors.ts'
import type { Query } from './calls.ts'

/** An error with its cause, its cure, and what support needs to find it. */
export function ProblemView({ error, retry }: { error: unknown; retry?: () => void }) {
  const { title, detail, code, requestId } = described(error)
  return (
    <div class="problem" role="alert">
      <p>
        <span class="state bad">{title}</span> {detail}
      </p>
      <p class="soft">
        {code && (
          <a href={`/errors/${code}`} target="_blank" rel="noreferrer">
            What to do about it
          </a>
        )}
        {requestId && (
          <>
            {' '}
            Request <code>{requestId}</code>
          </>
        )}
      </p>
      {retry && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  )
}

export function described(error: unknown): { title: string; detail: string; code?: string; requestId?: string | null } {
  if (error instanceof BerthError && error.problem) {
    const { title, detail, code } = error.problem
    const fields = error.errors.map((field) => `${field.pointer.replace(/^#\/?/, '')} ${field.detail}`)
    return { title: `${title}.`, detail: [detail, ...fields].join(' · '), code, requestId: error.requestId }
  }
  if (error instanceof BerthError) return { title: `The server answered ${error.status}.`, detail: error.message }
  if (error instanceof TypeError && /fetch|network|load/i.test(error.message)) {
    return { title: 'The server cannot be reached.', detail: 'The page catches up as soon as it can be.' }
  }
  return { title: 'The page failed.', detail: error instanceof Error ? error.message : String(error) }
}

/** Shows what was read; says so while it is not there, and why it cannot be. */
export function Loaded<T>({ of, children }: { of: Query<T>; children: (data: T) => ComponentChildren }) {
  const { data, error } = of
  if (data !== undefined) return <>{children(data)}</>
  if (error) return <ProblemView error={error} retry={of.refetch} />
  return (
    <div class="waiting" aria-busy="true">
      <span class="state off">Reading</span>
    </div>
  )
}

/** Nothing here yet, and what the next step is. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p>
        <b>{title}</b>
      </p>
      {children}
    </div>
  )
}

const messages = signal<{ id: number; text: string; bad: boolean }[]>([])
let said = 0
const shownMs = 5_000

/** A short message at the edge of the page, read out by screen readers. */
export function toast(text: string, bad = false): void {
  const id = ++said
  messages.value = [...messages.peek().slice(-2), { id, text, bad }]
  setTimeout(() => {
    messages.value = messages.peek().filter((message) => message.id !== id)
  }, shownMs)
}

export function toastError(error: unknown): void {
  const { title, detail } = described(error)
  toast(`${title} ${detail}`, true)
}

export function Toasts() {
  return (
    <div class="toasts" role="status">
      {messages.value.map(({ id, text, bad }) => (
        <p key={id} class={bad ? 'state bad' : ''}>
          {text}
        </p>
      ))}
    </div>
  )
}
