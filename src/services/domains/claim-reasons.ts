// Why nameservers cannot prove a claim, and how a claim ends, in sentences that say what to do.
import { isUsedUp, type Rivals } from './nameservers.ts'

export type TxtRecord = { name: string; value: string }

export function txtAdvice({ name, value }: TxtRecord): string {
  return `add the TXT record ${name} with the value ${value}`
}

/** Other accounts have, or had, the claim's pair, so a delegation to it does not say whose the name is. */
export function sharedText(host: string, pool: readonly string[], rivals: Pick<Rivals, 'here'>): string {
  const isOver = isUsedUp(pool, rivals)
  const why =
    pool.length > 2 && isOver
      ? `Every pair of nameservers has been given to another account for ${host} or a name above it`
      : `Another account has, or once had, a claim to ${host} or a name above it with the same nameservers`
  // Claims from before the pool was made larger.
  const others = isOver ? '' : ' Deleted and added again, it gets nameservers of its own.'
  return `${why}, so nameservers do not tell whose ${host} is.${others}`
}

/** What the owner of such a name has to do; `where` is where its DNS is. */
export function sharedAdvice(where: string, txt: TxtRecord): string {
  return `${where}, ${txtAdvice(txt)}, and let its nameservers be ours only after it is verified.`
}

export function endedReason(name: string): string {
  const ended =
    'This claim was not proved within 30 days and has ended: it is not checked, and its records are not answered'
  return `${ended}. To try again, delete the domain and add it again; GET /api/dns/${name}/zone saves its records.`
}
