// Explains why nameservers can't prove a claim, how a claim ends, and what to do.
import { isUsedUp, type Rivals } from './nameservers.ts'

export type TxtRecord = { name: string; value: string }

export function txtAdvice({ name, value }: TxtRecord): string {
  return `add the TXT record ${name} with the value ${value}`
}

/** Explains that other accounts have or had the same pair, so a delegation to it proves nothing. */
export function sharedText(host: string, pool: readonly string[], rivals: Pick<Rivals, 'here'>): string {
  const isOver = isUsedUp(pool, rivals)
  const why =
    pool.length > 2 && isOver
      ? `Every pair of nameservers is already assigned to another account for ${host} or a parent of it`
      : `Another account has added ${host} or a parent of it with the same nameservers, now or in the past`
  // The claim is older than the current, larger pool.
  const others = isOver ? '' : ' Delete it and add it again to get nameservers of its own.'
  return `${why}, so nameservers cannot prove who owns ${host}.${others}`
}

/** Advice for the owner of such a name; `where` describes its current DNS. */
export function sharedAdvice(where: string, txt: TxtRecord): string {
  return `${where}, ${txtAdvice(txt)}, and switch to our nameservers only after it is verified.`
}

export function endedReason(name: string): string {
  const ended = 'This domain was not verified within 30 days, so we no longer check it or answer its records'
  return `${ended}. To retry, save its records with GET /api/dns/${name}/zone, then delete the domain and add it again.`
}
