// Actions that need no form: sent at once, and shown as curl by the panel, or the head of the screen, that they stand in.
import { type Signal, signal } from '@preact/signals'
import { createContext } from 'preact'
import { useContext, useEffect, useMemo, useState } from 'preact/hooks'
import type { Call } from './calls.ts'
import { toastError } from './feedback.tsx'

type Command = { text: string; curl: string }

/** The commands of the actions inside; a panel provides it, and Top. */
export const Commands = createContext<Signal<Command[]>>(signal([]))

export const useCommands = () => useMemo(() => signal<Command[]>([]), [])

/** One command to a paragraph, under what its button says. */
export const curlsOf = (call: Call<unknown> | null | undefined, commands: Command[]) =>
  [call?.curl, ...commands.map(({ text, curl }) => `# ${text}\n${curl}`)].filter(Boolean).join('\n')

/** `example` is what the button sends, or one of what a choice may send. */
export function useAct<T>(text: string, example: Call<T>): [busy: boolean, run: (call?: Call<T>) => Promise<T>] {
  const [busy, wait] = useState(false)
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
    wait(true)
    return call.send().finally(() => wait(false))
  }
  return [busy, run]
}

type ActProps<T> = {
  call: Call<T>
  text: string
  kind?: 'quiet' | 'primary'
  /** Shows the change before it is confirmed; what it returns undoes it. */
  ahead?(): () => void
  done?(answer: T): void
}

/** A button that sends at once. In the rows of a table, ask by a dialog instead: it has a command of its own. */
export function Act<T>({ call, text, kind, ahead, done }: ActProps<T>) {
  const [busy, run] = useAct(text, call)
  const send = () => {
    const undo = ahead?.()
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
