// The TXT record that proves a domain, asked of the domain's own nameservers.
import { type Agreement, agree } from './agreement.ts'
import { askServers, type Surroundings } from './delegation.ts'
import { type Bounds, namesOf, type Server } from './lookups.ts'

export type Texts = { values: string[]; alias: string | null }

export async function findTexts(
  name: string,
  wanted: string,
  servers: readonly Server[],
  surroundings: Surroundings,
  bounds: Bounds,
): Promise<{ agreement: Agreement<Texts>; seen: string[] }> {
  const replies = await askServers(servers, name, 'TXT', surroundings, bounds, (answer) => {
    if (!answer.authoritative) return 'lame'
    // An alias is shown and not followed. Behind a wildcard alias stands a name of some service, whose other customers
    // would prove the domain as theirs; and what is not followed cannot go in circles.
    const [alias = null] = namesOf(answer.answer, name, 'CNAME')
    return { values: alias === null ? namesOf(answer.answer, name, 'TXT') : [], alias }
  })
  const seen = new Set(replies.flatMap(({ value }) => value?.values ?? []))
  return { agreement: agree(replies, ({ values }) => String(values.includes(wanted))), seen: [...seen].sort() }
}
