// CNAME chains that lead out of a zone into a zone below it that is served here too.
import { rcodes, typeNumbers } from '../../../dns/packet/numbers.ts'
import type { LookupResult } from './lookup.ts'

/** The name that a chain in an answer ends with; null if there is no chain. */
function endOf({ answer }: LookupResult): string | null {
  const last = answer.at(-1)
  return last?.set.type === typeNumbers.CNAME ? (last.set.rdatas[0]?.names[0] ?? null) : null
}

/**
 * Removes the denial of a name at the end of a chain if that name is in another zone. An unsigned zone has no delegation to
 * the zones below it, so it doesn't know their names.
 */
export function withoutOthers(found: LookupResult, isElsewhere: (name: string) => boolean): LookupResult {
  const end = found.authority.length > 0 ? endOf(found) : null
  return end !== null && isElsewhere(end) ? { ...found, rcode: rcodes.NOERROR, authority: [] } : found
}
