// Resolves the targets of ALIAS records: addresses are cached and refreshed in the background. Each account has its own
// part of the cache and of the lookups: whoever leads names to servers that never answer holds up nobody else.
import { Resolver } from 'node:dns/promises'
import { ipv4Octets, ipv6Octets } from '../../dns/addresses.ts'
import { typeNumbers } from '../../dns/packet/numbers.ts'
import { textName } from '../../dns/packet/wire-names.ts'
import type { Addresses } from './lookup.ts'
import { addressRdata } from './rdata.ts'

export type AddressType = 'A' | 'AAAA'

/** An empty list means that the name has no such address. Rejects if the lookup fails. */
export type ResolveAlias = (name: string, type: AddressType) => Promise<{ address: string; ttl: number }[]>

export type Aliases = {
  /** The addresses that are known now; unknown or expired ones are looked up in the background. */
  resolved(target: string, type: number, owner: string): Addresses | null
  /** Resolves when the lookup in progress has ended, or after the longest time an answer may wait. */
  settled(target: string, type: number, owner: string): Promise<void>
}

const lowestSeconds = 30
const highestSeconds = 300
// An expired address is most often still right, and better than SERVFAIL.
const staleMs = 3_600_000
const failedMs = 5_000
const highestWaitMs = 1_000
// Of one account.
const highestNames = 1_000
// A client that queries thousands of names must not make this server send thousands of lookups at once.
const highestInFlight = { account: 50, all: 500 }

export function createResolver(servers: readonly string[]): ResolveAlias {
  const resolver = new Resolver({ timeout: 1_500, tries: 2 })
  if (servers.length > 0) resolver.setServers([...servers])
  return async (name, type) => {
    try {
      return await (type === 'A' ? resolver.resolve4(name, { ttl: true }) : resolver.resolve6(name, { ttl: true }))
    } catch (error) {
      const { code } = error as { code?: string }
      if (code === 'ENODATA' || code === 'ENOTFOUND') return []
      throw error
    }
  }
}

type Entry = { addresses: Addresses | null; freshUntil: number; usableUntil: number }

/** Of one account; those that were asked for last come last. */
type Part = { entries: Map<string, Entry>; inFlight: Map<string, Promise<void>> }

export type AliasOptions = {
  /** Which addresses of a target may be answered; the others are left out. */
  mayAnswer(address: string): boolean
  now?(): number
}

export function createAliases(resolve: ResolveAlias, { mayAnswer, now = Date.now }: AliasOptions): Aliases {
  const parts = new Map<string, Part>()
  let inFlightOfAll = 0

  function partOf(owner: string): Part {
    const part = parts.get(owner) ?? { entries: new Map(), inFlight: new Map() }
    parts.set(owner, part)
    return part
  }

  function keep({ entries }: Part, key: string, entry: Entry): void {
    entries.delete(key)
    entries.set(key, entry)
    if (entries.size > highestNames) entries.delete(entries.keys().next().value!)
  }

  async function refresh(part: Part, key: string, target: string, type: number): Promise<void> {
    const before = part.entries.get(key)
    const ipv4 = type === typeNumbers.A
    try {
      const resolved = await resolve(textName(target), ipv4 ? 'A' : 'AAAA')
      const found = resolved.filter(({ address }) => mayAnswer(address))
      const octets = found.map(({ address }) => (ipv4 ? ipv4Octets(address) : ipv6Octets(address)))
      const lowest = Math.min(highestSeconds, ...found.map(({ ttl }) => ttl))
      const ttl = found.length === 0 ? lowestSeconds : Math.max(lowestSeconds, lowest)
      const rdatas = octets.filter((one) => one !== null).map(addressRdata)
      const freshUntil = now() + ttl * 1000
      keep(part, key, { addresses: { rdatas, ttl }, freshUntil, usableUntil: freshUntil + staleMs })
    } catch {
      const usable = before?.addresses && before.usableUntil > now()
      const freshUntil = now() + failedMs
      keep(part, key, {
        addresses: usable ? before.addresses : null,
        freshUntil,
        usableUntil: usable ? before.usableUntil : freshUntil,
      })
    }
  }

  function start(part: Part, key: string, target: string, type: number): void {
    const { inFlight } = part
    if (inFlight.has(key) || inFlight.size >= highestInFlight.account || inFlightOfAll >= highestInFlight.all) return
    inFlightOfAll++
    inFlight.set(
      key,
      refresh(part, key, target, type).finally(() => {
        inFlight.delete(key)
        inFlightOfAll--
      }),
    )
  }

  const keyOf = (target: string, type: number) => `${type} ${target}`

  return {
    resolved(target, type, owner) {
      const part = partOf(owner)
      const key = keyOf(target, type)
      const entry = part.entries.get(key)
      if (entry) keep(part, key, entry)
      if (!entry || entry.freshUntil <= now()) start(part, key, target, type)
      return entry && entry.usableUntil > now() ? entry.addresses : null
    },
    async settled(target, type, owner) {
      const pending = partOf(owner).inFlight.get(keyOf(target, type))
      if (!pending) return
      let timer: NodeJS.Timeout | undefined
      const late = new Promise<void>((done) => {
        timer = setTimeout(done, highestWaitMs)
      })
      await Promise.race([pending, late])
      clearTimeout(timer)
    },
  }
}
