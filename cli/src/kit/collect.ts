// Reads lists of the API up to a limit.
import { usage } from './failures.ts'

export async function collect<T>(items: AsyncIterable<T>, most = Number.POSITIVE_INFINITY): Promise<T[]> {
  const found: T[] = []
  if (most <= 0) return found
  for await (const item of items) {
    found.push(item)
    if (found.length >= most) break
  }
  return found
}

/** The value of --limit. */
export function countOf(text: string): number {
  if (!/^\d{1,6}$/.test(text)) throw usage(`--limit must be a number, not ${text}.`)
  return Number(text)
}
