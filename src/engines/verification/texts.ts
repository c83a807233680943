// Reads the TXT record that proves a domain from the domain's own nameservers.

import { type Agreement, agree } from './agreement.ts'
import type { Answer } from './answer.ts'
import { askServers, type DnsAccess } from './delegation.ts'
import { type Bounds, namesOf, type Server } from './lookups.ts'

export type Texts = { values: string[]; alias: string | null }

export async function findTexts(
  { name, value: wanted }: { name: string; value: string },
  servers: readonly Server[],
  dns: DnsAccess,
  bounds: Bounds,
): Promise<{ agreement: Agreement<Texts>; seen: string[] }> {
  const read = (answer: Answer) => {
    if (!answer.authoritative) return 'lame'
    // Reports a CNAME without following it. A wildcard CNAME leads to a service whose other customers could then prove
    // the domain as theirs. This also avoids loops.
    const [alias = null] = namesOf(answer.answer, name, 'CNAME')
    return { values: alias === null ? namesOf(answer.answer, name, 'TXT') : [], alias }
  }
  const replies = await askServers<Texts>(servers, { name, type: 'TXT', read }, dns, bounds)
  const seen = new Set(replies.flatMap(({ value }) => value?.values ?? []))
  return { agreement: agree(replies, ({ values }) => String(values.includes(wanted))), seen: [...seen].sort() }
}
