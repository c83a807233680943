// Work that costs much: an account has one piece of it under way at this server, a few wait, and more are refused.
import { tooMany } from './rate-limit.ts'

export type Turns = <T>(accountId: string, work: () => Promise<T>) => Promise<T>

/** `what`: of which there are too many, for who is refused. */
export function createTurns(what: string, mostWaiting: number): Turns {
  /** Those that wait behind the one that is under way. */
  const lines = new Map<string, (() => void)[]>()
  return async (accountId, work) => {
    const line = lines.get(accountId)
    if (!line) lines.set(accountId, [])
    else if (line.length >= mostWaiting) throw tooMany(`The account has ${line.length + 1} ${what} under way.`, 1)
    else await new Promise<void>((resolve) => line.push(resolve))
    try {
      return await work()
    } finally {
      const next = lines.get(accountId)!.shift()
      if (next) next()
      else lines.delete(accountId)
    }
  }
}
