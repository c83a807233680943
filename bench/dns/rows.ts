// The measurements of the group dns.
import type { Figure } from '../group.ts'

export type Peer = 'PowerDNS' | 'Knot'

const both = ['PowerDNS', 'Knot'] as const
const programs = { PowerDNS: 'pdns_server', Knot: 'knotd' } as const
const compared = {
  answers: 'Answers of 1,000 zones over UDP, per second',
  'names that do not exist': 'The same to names that do not exist, each asked for once',
  'names of a wildcard': 'The same to names of a wildcard, each asked for once',
  signed: 'Answers of 1,000 signed zones, with DO, per second',
  'names that do not exist, signed': 'The same to names that do not exist, each asked for once',
  'names of a wildcard, signed': 'The same to names of a wildcard, each asked for once',
} as const
export type Compared = keyof typeof compared

const comparisons = Object.fromEntries(
  Object.entries(compared).flatMap(([key, what]) =>
    both.map((against) => {
      const needs = ['dnsperf', programs[against], ...(what.includes('igned') || key.includes('signed') ? ['dig'] : [])]
      return [`${key} ${against}`, { what, against, needs }]
    }),
  ),
) as Record<`${Compared} ${Peer}`, Figure>

export const figures = {
  ...comparisons,
  changes: { what: 'p99 from a change to its answer on both nameservers', against: '–' },
  signedChanges: { what: 'The same in signed zones', against: '–' },
  large: { what: 'p99 from a change to its answer in a zone of 100,000 records', against: 'the same in a zone of 10' },
  signedLarge: { what: 'The same in signed zones', against: 'the same in a zone of 10' },
  start: { what: 'Start of a nameserver with 100,000 zones', against: '–' },
  memory: { what: 'Memory of a nameserver with 100,000 zones', against: '–' },
} satisfies Record<string, Figure>

export type FigureName = keyof typeof figures
