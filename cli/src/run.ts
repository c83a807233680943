// Runs one command and ends it at Ctrl-C.
import { CommanderError } from 'commander'
import { type Context, createContext } from './kit/context.ts'
import { exitCodes, usage } from './kit/failures.ts'
import type { On } from './kit/tree.ts'
import { describe } from './program.ts'

export async function run(args: string[], home: string | null): Promise<number> {
  let ended: Promise<number> | undefined
  const asJson = args.includes('--json')
  const call: On = (command, load) => {
    command.action(async (...given: unknown[]) => {
      const context = createContext(command, home)
      ended = finish(context, async () => (await load())(context, argumentsOf(given), command.opts()))
      await ended
    })
  }
  // Creates only the command that was called; if there is none, all of them, so that the error can suggest one.
  const one = describe(call, { only: args[0], silent: asJson })
  const program = one.commands.length > 0 ? one : describe(call, { silent: asJson })
  try {
    await program.parseAsync(args, { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    if (error.exitCode === 0) return exitCodes.ok
    if (asJson) throw usage(messageOf(error))
    return exitCodes.usage
  }
  return (await ended) ?? exitCodes.ok
}

function messageOf({ code, message }: CommanderError): string {
  return code === 'commander.help' ? 'No command was given.' : message.replace(/^error: /, '')
}

/** Commander passes the arguments, singly or as lists, then the options and the command. */
function argumentsOf(given: unknown[]): string[] {
  return given.slice(0, -2).flatMap((one) => (one === undefined ? [] : (one as string | string[])))
}

/** Exits at Ctrl-C, whatever is in progress, after undoing what can be undone. */
async function finish(context: Context, work: () => Promise<number | undefined>): Promise<number> {
  const { signal, undo } = context
  const interrupted = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => {
      const late = new Promise((resolve) => setTimeout(resolve, 3_000))
      const undone = Promise.allSettled([...undo].map((one) => one()))
      void Promise.race([undone, late]).then(() => reject(signal.reason))
    })
  })
  const worked = work().catch((error) => (signal.aborted ? interrupted : Promise.reject(error)))
  return (await Promise.race([worked, interrupted])) ?? exitCodes.ok
}
