// Queries nameservers that refuse transfers for common names, and for the names in their answers.
import { nameWithinZone } from '../../dns/names.ts'
import { typeNumbers } from '../../dns/packet/numbers.ts'
import type { DecodedRecord } from '../../dns/packet/records.ts'
import { readName } from '../../dns/packet/wire-names.ts'
import { randomLabel } from '../../platform/ids.ts'
import { apexTypes, hosts, selectors, services, texts, wildcardTypes } from './names.ts'
import { askServer, type Nameservers } from './servers.ts'

export type QueryResult = { records: DecodedRecord[]; questions: number; complete: boolean }

type Type = keyof typeof typeNumbers
type Question = { name: string; type: Type }

const maxQuestions = 600
/** For all answers together, or for a transfer. A server may answer each query with thousands of records. */
export const discoveryLimits = { maxOctets: 4 * 1024 * 1024, maxRecords: 10_000 }
const maxParallel = 16
// After this many consecutive failures, a server isn't queried anymore.
const maxFailures = 4

const textOf = (rdata: Buffer): string => {
  let text = ''
  for (let at = 0; at < rdata.length; at += 1 + rdata[at]!)
    text += rdata.toString('latin1', at + 1, at + 1 + rdata[at]!)
  return text
}

/** The names in a record, with the types to query there. */
function* followUps({ type, rdata }: DecodedRecord): Generator<Question> {
  const nameAt = (offset: number) => readName(rdata, offset).name
  const host = function* (name: string): Generator<Question> {
    yield { name, type: 'A' }
    yield { name, type: 'AAAA' }
  }
  if (type === typeNumbers.MX) yield* host(nameAt(2))
  if (type === typeNumbers.SRV) yield* host(nameAt(6))
  if (type === typeNumbers.CNAME) {
    yield* host(nameAt(0))
    yield { name: nameAt(0), type: 'TXT' }
  }
  if (type !== typeNumbers.TXT) return
  const text = textOf(rdata)
  if (!/^v=spf1\b/i.test(text)) return
  for (const [, mechanism, name] of text.matchAll(/\b(include:|redirect=|exists:|a:|mx:)([A-Za-z0-9._-]{1,253})/gi)) {
    if (/^(a|mx):$/i.test(mechanism!)) yield* host(name!.toLowerCase())
    else yield { name: name!.toLowerCase(), type: 'TXT' }
  }
}

function commonQuestions(domain: string): Question[] {
  const below = (name: string) => `${name}.${domain}`
  return [
    ...apexTypes.map((type) => ({ name: domain, type })),
    ...texts.map((name) => ({ name: below(name), type: 'TXT' as const })),
    ...selectors.map((name) => ({ name: below(`${name}._domainkey`), type: 'TXT' as const })),
    ...services.map((name) => ({ name: below(name), type: 'SRV' as const })),
    ...hosts.flatMap((name) => [
      { name: below(name), type: 'A' as const },
      { name: below(name), type: 'AAAA' as const },
    ]),
  ]
}

const keyOf = ({ type, rdata }: DecodedRecord) => `${type} ${rdata.toString('latin1')}`

/** Removes records synthesized by a wildcard, except at names with other records, where the wildcard doesn't apply. */
function withoutSynthesized(domain: string, found: DecodedRecord[], wildcards: DecodedRecord[]): DecodedRecord[] {
  const covered = new Set(wildcards.map(keyOf))
  if (covered.size === 0) return found
  const own = found.filter((record) => record.name === domain || !covered.has(keyOf(record)))
  const enclosers = new Set<string>()
  for (const { name } of own) {
    for (let above = name; above !== domain; above = above.slice(above.indexOf('.') + 1)) enclosers.add(above)
  }
  const isOwn = new Set(own)
  return found.filter((record) => isOwn.has(record) || enclosers.has(record.name.slice(record.name.indexOf('.') + 1)))
}

export async function queryCommonNames(
  domain: string,
  { servers }: Nameservers,
  signal: AbortSignal,
): Promise<QueryResult> {
  const failures = servers.map(() => 0)
  const queue: Question[] = []
  const queued = new Set<string>()
  const found = new Map<string, DecodedRecord>()
  let questions = 0
  let octets = 0
  let unanswered = false

  function add(question: Question): void {
    const key = `${question.name} ${question.type}`
    if (queued.has(key) || nameWithinZone(question.name, domain) === null) return
    if (queued.size >= maxQuestions) {
      unanswered = true
      return
    }
    queued.add(key)
    queue.push(question)
  }

  /** Returns the answer of the first server that has one; null if none does. */
  async function ask({ name, type }: Question): Promise<DecodedRecord[] | null> {
    for (const [index, { server }] of servers.entries()) {
      if (failures[index]! >= maxFailures) continue
      if (questions >= maxQuestions) return null
      questions++
      const answer = await askServer(server, name, typeNumbers[type], signal)
      failures[index] = answer ? 0 : failures[index]! + 1
      if (answer) return answer
    }
    return null
  }

  function addRecord(record: DecodedRecord): void {
    if (nameWithinZone(record.name, domain) === null) return
    octets += record.rdata.length
    if (found.size >= discoveryLimits.maxRecords || octets > discoveryLimits.maxOctets) {
      unanswered = true
      queue.length = 0
      return
    }
    found.set(`${record.name} ${keyOf(record)}`, record)
    try {
      for (const lead of followUps(record)) add(lead)
    } catch {
      // The rdata is malformed. The record is returned unchanged.
    }
  }

  async function drain(): Promise<void> {
    let running = 0
    await new Promise<void>((resolve, reject) => {
      const next = () => {
        if (running === 0 && queue.length === 0) return resolve()
        while (running < maxParallel && queue.length > 0) {
          const question = queue.shift()!
          running++
          ask(question)
            .then((answer) => {
              running--
              if (!answer) unanswered = true
              for (const record of answer ?? []) addRecord(record)
              next()
            })
            .catch(reject)
        }
      }
      next()
    })
  }

  try {
    const random = `${randomLabel(16)}.${domain}`
    const wild = await Promise.all(wildcardTypes.map((type) => ask({ name: random, type })))
    const wildcards = wild.flatMap((answer) => answer ?? []).filter(({ name }) => name === random)
    for (const question of commonQuestions(domain)) add(question)
    await drain()
    const records = [...withoutSynthesized(domain, [...found.values()], wildcards)]
    const wildcard = wildcards.map((record) => ({ ...record, name: `*.${domain}` }))
    const all = [...records, ...wildcard].slice(0, discoveryLimits.maxRecords)
    return { records: all, questions, complete: !unanswered }
  } catch (error) {
    // After a timeout, return what was found so far.
    if (!signal.aborted) throw error
    return { records: [...found.values()], questions, complete: false }
  }
}
