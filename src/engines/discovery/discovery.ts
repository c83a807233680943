// Discovers the records on a domain's current nameservers: by a zone transfer if allowed, else by many queries.
// Limited in queries and time, and per account. In production, never queries private addresses.
import type { Config } from '../../config.ts'
import { splitFields } from '../../dns/fields.ts'
import { nameWithinZone } from '../../dns/names.ts'
import { fetchZone } from '../../dns/packet/axfr.ts'
import type { Server } from '../../dns/packet/exchange.ts'
import { classIn, typeNumbers } from '../../dns/packet/numbers.ts'
import type { DecodedRecord } from '../../dns/packet/records.ts'
import { parseRdata } from '../../dns/rdata/rdata.ts'
import { genericPresentation } from '../../dns/rdata/rdata-generic.ts'
import { ttlLimits } from '../../dns/record-types.ts'
import { typeInZoneFile } from '../../dns/type-names.ts'
import { Fault } from '../../platform/errors.ts'
import { createPauses } from '../../platform/pauses.ts'
import type { Discover, Discovered, FoundRecord } from '../../services/dns/index.ts'
import { discoveryLimits, queryCommonNames } from './queries.ts'
import { askServer, findNameservers, type Nameservers, type ServersOptions } from './servers.ts'

export type DiscoveryOptions = {
  config: Pick<Config, 'dnsResolvers' | 'nameservers' | 'production'>
  /** The endpoint for the server at an address. For tests only. */
  reach?: (address: string) => Server
  /** Default: only outside production. For tests only. */
  allowPrivate?: boolean
}

const timeoutMs = 15_000
const transfer = { timeoutMs: 5_000, ...discoveryLimits }
// For all accounts in this process. Each account gets one.
const maxAtOnce = 10
// Limits how often an account can make us query a nameserver of its choice.
const maxPerAccount = 12
const windowMs = 10 * 60_000
// Names that aren't in the public DNS (RFC 6761, RFC 2606).
const reserved = new Set(['test', 'localhost', 'invalid', 'example', 'local'])
// Types that the nameserver itself provides, or that belong to the old zone's signatures.
const signatureTypes = new Set<number>([typeNumbers.SOA, 46, 47, 48, 50, 51, 59, 60, 63])

export function createDiscovery(options: DiscoveryOptions): Discover {
  const { config, reach, allowPrivate = !config.production } = options
  const access: ServersOptions = { resolvers: config.dnsResolvers, allowPrivate, reach, own: config.nameservers }
  const running = new Set<string>()
  const startTimes = new Map<string, number[]>()

  function reserveSlot(accountId: string): void {
    const nowMs = Date.now()
    for (const [account, times] of startTimes) if (times.at(-1)! < nowMs - windowMs) startTimes.delete(account)
    const recent = (startTimes.get(accountId) ?? []).filter((atMs) => atMs > nowMs - windowMs)
    if (running.has(accountId) || running.size >= maxAtOnce) {
      throw new Fault('discovery_in_progress', undefined, { retryAfterSeconds: 5 })
    }
    if (recent.length >= maxPerAccount) {
      const retryAfterSeconds = Math.ceil((recent[0]! + windowMs - nowMs) / 1_000)
      const detail = `An account can run ${maxPerAccount} discoveries in ten minutes.`
      throw new Fault('rate_limited', detail, { retryAfterSeconds })
    }
    startTimes.set(accountId, [...recent, nowMs])
    running.add(accountId)
  }

  return async (domain, accountId) => {
    if (reserved.has(domain.slice(domain.lastIndexOf('.') + 1))) {
      return nothing([], `${domain} is not in the public DNS.`)
    }
    reserveSlot(accountId)
    try {
      return await discover(domain)
    } finally {
      running.delete(accountId)
    }
  }

  async function discover(domain: string): Promise<Discovered> {
    const found = await findNameservers(domain, access)
    if (!found) return nothing([], 'The resolvers could not find the nameservers of the domain. Retry later.')
    const { hosts, servers } = found
    if (hosts.length === 0) return nothing([], 'The domain has no nameservers in the public DNS.')
    if (servers.length === 0) {
      const ours = hosts.every((host) => config.nameservers.includes(host))
      const why = ours ? 'It is already delegated to our nameservers.' : 'None of its nameservers has a public address.'
      return nothing(hosts, why)
    }
    const signal = AbortSignal.timeout(timeoutMs)
    const responsive = await keepResponsive(found, signal)
    if (responsive.servers.length === 0) return nothing(hosts, 'None of its nameservers answered.')
    const transferred = await tryTransfer(responsive, signal)
    if (transferred)
      return {
        ...(await toApiRecords(domain, transferred)),
        nameservers: hosts,
        method: 'transfer',
        questions: 0,
        reason: null,
      }
    const { records, questions, complete } = await queryCommonNames(domain, responsive, signal)
    const reason = complete ? null : 'Some queries were not answered in time, so there may be more records.'
    return { ...(await toApiRecords(domain, records)), nameservers: hosts, method: 'questions', questions, reason }
  }

  async function keepResponsive(found: Nameservers, signal: AbortSignal): Promise<Nameservers> {
    const { zone, servers } = found
    const answers = await Promise.all(servers.map(({ server }) => askServer(server, zone, typeNumbers.SOA, signal)))
    return { ...found, servers: servers.filter((_, index) => answers[index] !== null) }
  }

  async function tryTransfer({ zone, servers }: Nameservers, signal: AbortSignal): Promise<DecodedRecord[] | null> {
    for (const { server } of servers.slice(0, 2)) {
      const records = await fetchZone(server, zone, { ...transfer, signal })
      if (typeof records !== 'string') return records
    }
    return null
  }
}

const nothing = (nameservers: string[], reason: string): Discovered => ({
  nameservers,
  method: null,
  questions: 0,
  records: [],
  skipped: [],
  reason,
})

/** Converts records to the API's form. Those with unsupported types are listed as skipped. */
async function toApiRecords(
  domain: string,
  records: readonly DecodedRecord[],
): Promise<Pick<Discovered, 'records' | 'skipped'>> {
  const pauses = createPauses()
  const found: FoundRecord[] = []
  const skipped: Discovered['skipped'] = []
  for (const record of records) {
    const pause = pauses()
    if (pause) await pause
    const name = nameWithinZone(record.name, domain)
    const isOurs = signatureTypes.has(record.type) || (record.type === typeNumbers.NS && name === '@')
    if (name === null || record.class !== classIn || isOurs) continue
    const ttl = Math.min(ttlLimits.max, Math.max(ttlLimits.min, record.ttl))
    const read = presentationOf(record, domain)
    if (read.ok) found.push({ name, type: read.type, value: read.value, ttl })
    else skipped.push({ name, type: `TYPE${record.type}`, reason: read.reason })
  }
  return { records: found, skipped }
}

type Value = { ok: true; type: FoundRecord['type']; value: string } | { ok: false; reason: string }

function presentationOf({ type: number, rdata }: DecodedRecord, domain: string): Value {
  const type = typeInZoneFile(`TYPE${number}`)
  if (type === 'foreign' || type === 'signing' || type === 'unknown' || type === 'SOA') {
    return { ok: false, reason: 'Records of this type are not supported.' }
  }
  const fields = splitFields(`\\# ${rdata.length} ${rdata.toString('hex')}`)
  const text = fields.ok ? genericPresentation(type, fields.value) : fields
  const value = text.ok ? parseRdata(type, text.value, domain) : text
  return value.ok ? { ok: true, type, value: value.value } : { ok: false, reason: value.detail }
}
