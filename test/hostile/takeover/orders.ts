// Every order of what an owner and others do with a name, and the names that they do it with.

export type Who = 'owner' | 'thief' | 'other'
export type Deed = 'claim' | 'delegate' | 'text' | 'delete' | 'hold passes'
export type Step = { who: Who; deed: Deed }

/** Whom a scenario is about: each account's names, the one that it is after first. */
export type Scenario = { names: Record<Who, string[]>; steps: Step[] }

/** All ways to merge the lists, each of which keeps its own order. */
export function ordersOf<T>(...lists: readonly (readonly T[])[]): T[][] {
  if (lists.every((list) => list.length === 0)) return [[]]
  return lists.flatMap((list, index) => {
    const [first, ...rest] = list
    if (first === undefined) return []
    const others = lists.map((one, at) => (at === index ? rest : one))
    return ordersOf(...others).map((order) => [first, ...order])
  })
}

const stepsOf = (who: Who, ...deeds: Deed[]): Step[] => deeds.map((deed) => ({ who, deed }))

const delegates: Deed[] = ['claim', 'delegate', 'delete', 'hold passes', 'claim']
const proves: Deed[] = ['claim', 'text', 'delete', 'hold passes']

type Family = { what: string; names(host: string): Record<Who, string[]>; scripts: Step[][] }

export const families: Family[] = [
  {
    what: 'the same name, which its owner delegates, gives up and claims again',
    names: (host) => ({ owner: [host], thief: [host], other: [] }),
    scripts: [stepsOf('owner', ...delegates), stepsOf('thief', 'claim', 'delete')],
  },
  {
    what: 'the same name, which its owner proves by the TXT record',
    names: (host) => ({ owner: [host], thief: [host], other: [] }),
    scripts: [stepsOf('owner', ...proves), stepsOf('thief', 'claim', 'delete')],
  },
  {
    what: 'the same name, which three accounts claim',
    names: (host) => ({ owner: [host], thief: [host], other: [host] }),
    scripts: [
      stepsOf('owner', 'claim', 'delegate', 'delete', 'hold passes'),
      stepsOf('thief', 'claim'),
      stepsOf('other', 'claim'),
    ],
  },
  {
    what: 'a name below the owner’s',
    names: (host) => ({ owner: [host], thief: [`www.${host}`], other: [] }),
    scripts: [stepsOf('owner', ...delegates), stepsOf('thief', 'claim', 'delete')],
  },
  {
    what: 'the name above the owner’s, and its wildcard',
    names: (host) => ({ owner: [`shop.${host}`], thief: [host, `*.${host}`], other: [] }),
    scripts: [stepsOf('owner', ...delegates), stepsOf('thief', 'claim', 'delete')],
  },
  {
    what: 'the same name and its wildcard, and a name below',
    names: (host) => ({ owner: [host, `*.${host}`], thief: [host, `*.${host}`], other: [`a.b.${host}`] }),
    scripts: [stepsOf('owner', 'claim', 'delegate', 'delete'), stepsOf('thief', 'claim'), stepsOf('other', 'claim')],
  },
]

let hosts = 0

export function scenariosOf({ names, scripts }: Family): Scenario[] {
  return ordersOf(...scripts).map((steps) => ({ names: names(`v${++hosts}.com`), steps }))
}
