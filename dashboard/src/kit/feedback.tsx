// Feedback: problems, loading, empty lists, and short messages.
import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { BerthError } from '../../../sdk/src/errors.ts'
import type { Query } from './calls.ts'

/** An error with its cause, its fix, and the request ID for support. */
export function ProblemView({ error, retry }: { error: unknown; retry?: () => void }) {
  const { title, detail, code, requestId } = describeError(error)
  return (
    <div class="problem" role="alert">
      <p>
        <span class="state bad">{title}</span> {detail}
      </p>
      <p class="soft">
        {code && (
          <a href={`/errors/${code}`} target="_blank" rel="noreferrer">
            How to fix it
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

export function describeError(error: unknown): {
  title: string
  detail: string
  code?: string
  requestId?: string | null
} {
  if (error instanceof BerthError && error.problem) {
    const { title, detail, code } = error.problem
    const fields = error.errors.map((field) => `${field.pointer.replace(/^#\/?/, '')} ${field.detail}`)
    return { title: `${title}.`, detail: [detail, ...fields].join(' · '), code, requestId: error.requestId }
  }
  if (error instanceof BerthError) return { title: `The server responded with ${error.status}.`, detail: error.message }
  if (error instanceof TypeError && /fetch|network|load/i.test(error.message)) {
    return { title: "We can't reach the server.", detail: "We'll retry automatically." }
  }
  return { title: 'Something went wrong.', detail: error instanceof Error ? error.message : String(error) }
}

/** Shows the loaded data, or that it is loading or why it failed. */
export function Loaded<T>({ of, children }: { of: Query<T>; children: (data: T) => ComponentChildren }) {
  const { data, error } = of
  if (data !== undefined) return <>{children(data)}</>
  if (error) return <ProblemView error={error} retry={of.refetch} />
  return (
    <div class="waiting" aria-busy="true">
      <span class="state off">Loading</span>
    </div>
  )
}

/** An empty list, with the next step. */
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
let lastId = 0
const shownMs = 5_000

/** Shows a short message at the edge of the page; screen readers announce it. */
export function toast(text: string, bad = false): void {
  const id = ++lastId
  messages.value = [...messages.peek().slice(-2), { id, text, bad }]
  setTimeout(() => {
    messages.value = messages.peek().filter((message) => message.id !== id)
  }, shownMs)
}

export function toastError(error: unknown): void {
  const { title, detail } = describeError(error)
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
