// Runs undoOne command and handles Ctrl-C.
import { CommanderError } from 'commander'
import { type Context, createContext } from './kit/context.ts'
import { exitCodes, usage } from './kit/failures.ts'
import type { On } from './kit/tree.ts'
import { createProgram } from './program.ts'

export async function run(args: string[], home: string | null): Promise<number> {
  let result: Promise<number> | undefined
  const asJson = args.includes('--json')
  const call: On = (command, load) => {
    command.action(async (...params: unknown[]) => {
      const context = createContext(command, home)
      result = finish(context, async () => (await load())(context, argumentsOf(params), command.opts()))
      await result
    })
  }
  // Creates only the called command, or all if it doesn't exist, so that the error can suggest undoOne.
  const undoOne = createProgram(call, { only: args[0], silent: asJson })
  const program = undoOne.commands.length > 0 ? undoOne : createProgram(call, { silent: asJson })
  try {
    await program.parseAsync(args, { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    if (error.exitCode === 0) return exitCodes.ok
    if (asJson) throw usage(messageOf(error))
    return exitCodes.usage
  }
  return (await result) ?? exitCodes.ok
}

function messageOf({ code, message }: CommanderError): string {
  return code === 'commander.help' ? 'No command was given.' : message.replace(/^error: /, '')
}

/** Commander passes the arguments, each a string or a list, then the options and the command. */
function argumentsOf(params: unknown[]): string[] {
  return params.slice(0, -2).flatMap((param) => (param as string | string[] | undefined) ?? [])
}

/** At Ctrl-C, runs the undo functions for up to 3 seconds and rejects. */
async function finish(context: Context, work: () => Promise<number | undefined>): Promise<number> {
  const { signal, undo } = context
  const interrupted = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => {
      const timeout = new Promise((resolve) => setTimeout(resolve, 3_000))
      const undone = Promise.allSettled([...undo].map((undoOne) => undoOne()))
      void Promise.race([undone, timeout]).then(() => reject(signal.reason))
    })
  })
  const worked = work().catch((error) => (signal.aborted ? interrupted : Promise.reject(error)))
  return (await Promise.race([worked, interrupted])) ?? exitCodes.ok
}
