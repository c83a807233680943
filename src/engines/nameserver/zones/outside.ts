// What answers need from outside their zone: the addresses of the edge, and waiting for those of a new ALIAS.
import { isIPv6 } from 'node:net'
import type { Config } from '../../../config.ts'
import { typeNumbers } from '../../../dns/packet/numbers.ts'
import { wireName } from '../../../dns/packet/wire-names.ts'
import { generatedTtl } from '../../../services/dns/index.ts'
import { type Addresses, isWithin, type OutsideAddresses } from './lookup.ts'
import { rdataOf } from './rdata.ts'

export function edgeAddresses(config: Pick<Config, 'edge'>): OutsideAddresses['edge'] {
  const domain = wireName(config.edge.domain)
  const byType = new Map<number, Addresses>()
  for (const type of ['A', 'AAAA'] as const) {
    const rdatas = config.edge.addresses
      .filter((address) => isIPv6(address) === (type === 'AAAA'))
      .flatMap((address) => rdataOf(type, address) ?? [])
    byType.set(typeNumbers[type], { rdatas, ttl: generatedTtl })
  }
  return (target, type) => (isWithin(target, domain) ? byType.get(type)! : null)
}

export type Aliases = {
  /** Resolves when the zone has changed, or after the maximum time that an answer may wait. */
  settled(zone: string): Promise<void>
}

const maxWaitMs = 1_000

/** The addresses of a new ALIAS come with the next version of its zone, some milliseconds later. */
export function createAliases(onChange: (listener: (names: readonly string[]) => void) => () => void): Aliases {
  const waiting = new Map<string, Set<() => void>>()
  onChange((names) => {
    if (waiting.size === 0) return
    for (const name of names) for (const done of waiting.get(name) ?? []) done()
  })
  return {
    settled(zone) {
      return new Promise((resolve) => {
        const others = waiting.get(zone) ?? new Set()
        waiting.set(zone, others)
        const done = () => {
          clearTimeout(timer)
          others.delete(done)
          if (others.size === 0 && waiting.get(zone) === others) waiting.delete(zone)
          resolve()
        }
        const timer = setTimeout(done, maxWaitMs)
        others.add(done)
      })
    },
  }
}
