// Actions without a form, sent at once. The panel or heading around them shows them as curl.
import { type Signal, signal } from '@preact/signals'
import { createContext } from 'preact'
import { useContext, useEffect, useMemo, useState } from 'preact/hooks'
import type { Call } from './calls.ts'
import { toastError } from './feedback.tsx'

type Command = { text: string; curl: string }

/** The commands of the actions inside; provided by Panel and Top. */
export const Commands = createContext<Signal<Command[]>>(signal([]))

export const useCommands = () => useMemo(() => signal<Command[]>([]), [])

/** A paragraph per command, headed by the label of its button. */
export const curlsOf = (call: Call<unknown> | null | undefined, commands: Command[]) =>
  [call?.curl, ...commands.map(({ text, curl }) => `# ${text}\n${curl}`)].filter(Boolean).join('\n')

/** `example` is the call to show as curl, and what `run` sends by default. */
export function useAct<T>(text: string, example: Call<T>): [busy: boolean, run: (call?: Call<T>) => Promise<T>] {
  const [busy, setBusy] = useState(false)
  const commands = useContext(Commands)
  const { curl } = example
  useEffect(() => {
    if (curl === null) return undefined
    const one = { text, curl }
    commands.value = [...commands.peek(), one]
    return () => {
      commands.value = commands.peek().filter((it) => it !== one)
    }
  }, [commands, text, curl])
  const run = (call = example) => {
    setBusy(true)
    return call.send().finally(() => setBusy(false))
  }
  return [busy, run]
}

type ActProps<T> = {
  call: Call<T>
  text: string
  kind?: 'quiet' | 'primary'
  /** Shows the change before the server confirms it; returns an undo function. */
  optimistic?(): () => void
  done?(response: T): void
}

/** A button that sends at once. In table rows use a dialog instead, which shows its own curl. */
export function Act<T>({ call, text, kind, optimistic, done }: ActProps<T>) {
  const [busy, run] = useAct(text, call)
  const send = () => {
    const undo = optimistic?.()
    run().then(done, (error) => {
      undo?.()
      toastError(error)
    })
  }
  return (
    <button type="button" class={kind ?? ''} disabled={busy} onClick={send}>
      {text}
    </button>
  )
}
