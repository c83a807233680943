// Collects lists of the API up to a limit.
import { InvalidResponse } from '../../../sdk/src/errors.ts'
import { usage } from './failures.ts'

// No account has a list this long: such a server would never stop.
const maxItems = 1_000_000

export async function collect<T>(items: AsyncIterable<T>, max = Number.POSITIVE_INFINITY): Promise<T[]> {
  const found: T[] = []
  if (max <= 0) return found
  for await (const item of items) {
    if (found.length >= maxItems) throw new InvalidResponse(`The server sent a list of more than ${maxItems} items.`)
    found.push(item)
    if (found.length >= max) break
  }
  return found
}

/** Parses the value of --limit. */
export function parseLimit(text: string): number {
  if (!/^\d{1,6}$/.test(text)) throw usage(`--limit must be a number, not ${text}.`)
  return Number(text)
}
