// Chains of CNAME records that lead out of a zone into one below it that is served here too.
import { rcodes, typeNumbers } from '../../../dns/packet/numbers.ts'
import type { Found } from './lookup.ts'

/** The name that a chain in an answer ends with; null if the answer is none. */
function endOf({ answer }: Found): string | null {
  const last = answer.at(-1)
  return last?.set.type === typeNumbers.CNAME ? (last.set.rdatas[0]?.names[0] ?? null) : null
}

/**
 * Without the denial of a name that a chain ends with, where that name is in another zone: a zone that is not signed has
 * no delegation to the zones below it, and knows nothing of their names.
 */
export function withoutOthers(found: Found, isElsewhere: (name: string) => boolean): Found {
  const end = found.authority.length > 0 ? endOf(found) : null
  return end !== null && isElsewhere(end) ? { ...found, rcode: rcodes.NOERROR, authority: [] } : found
}
