// Traffic of projects and zones, read from the rollups.
import type { Static } from '@sinclair/typebox'
import type { Db } from '../../platform/database/database.ts'
import type { AccountTraffic, DnsTraffic, ProjectTraffic, TrafficTotals } from '../../schemas/traffic.ts'
import { answerCodes, questionTypes } from '../../schemas/traffic.ts'
import { dnsColumns, durationBoundsMs, edgeAt, edgeColumns } from '../../schemas/traffic-columns.ts'
import { findZone } from '../dns/index.ts'
import type { Actor } from '../identity/index.ts'
import { findProject } from '../projects/index.ts'
import { type RangeQuery, rangeOf, type TrafficRange } from './ranges.ts'
import { readDnsTraffic, readTraffic, readTrafficHosts, readTrafficOfProjects } from './statements.ts'

/** Two days by minutes, 120 days by hours. */
const maxBuckets = 2_880
/** A week by hours, of every project. */
const maxProjectBuckets = 168
const maxProjects = 1_000
const maxHosts = 20

type Counts = number[]

/** The counts of each bucket; `rows` lacks empty buckets. */
function bucketsOf(rows: { bucket: number }[], columns: readonly string[], { count }: TrafficRange): Counts[] {
  const byBucket = new Map(rows.map((row) => [row.bucket, row as unknown as Record<string, string>]))
  return Array.from({ length: count }, (_, index) => columns.map((name) => Number(byBucket.get(index)?.[name] ?? 0)))
}

function sumOf(buckets: readonly Counts[], columns: readonly string[]): Counts {
  return columns.map((_name, index) => buckets.reduce((sum, counts) => sum + counts[index]!, 0))
}

const timeOf = ({ from, seconds }: TrafficRange, bucket: number) =>
  new Date(from.getTime() + bucket * seconds * 1000).toISOString()

const viewRange = ({ from, to, step }: TrafficRange) => ({ from: from.toISOString(), to: to.toISOString(), step })
const selection = ({ rollups: step, from, to, seconds }: TrafficRange) => ({ step, from, to, seconds })
const rounded = (ms: number) => Math.round(ms * 100) / 100

/** Estimates a quantile of response times, assuming an even distribution within each bucket. */
export function quantileOf(durations: readonly number[], part: number): number | null {
  const target = durations.reduce((sum, count) => sum + count, 0) * part
  if (target === 0) return null
  let before = 0
  for (const [index, count] of durations.entries()) {
    const min = durationBoundsMs[index - 1] ?? 0
    const max = durationBoundsMs[index] ?? min
    if (before + count >= target) return rounded(min + ((max - min) * (target - before)) / count)
    before += count
  }
  return durationBoundsMs.at(-1)!
}

function viewCounts(counts: Counts): Static<typeof TrafficTotals> {
  const classes = [1, 2, 3, 4, 5].map((group) => counts[edgeAt.status + group]!)
  const durations = counts.slice(edgeAt.durations)
  const timed = durations.reduce((sum, count) => sum + count, 0)
  const [informed, done, sent, refused, failed] = classes as [number, number, number, number, number]
  return {
    requests: classes.reduce((sum, count) => sum + count, 0),
    bytes: counts[edgeAt.bytes]!,
    status: { '1xx': informed, '2xx': done, '3xx': sent, '4xx': refused, '5xx': failed },
    durationMs: {
      mean: timed === 0 ? null : rounded(counts[edgeAt.durationUs]! / 1000 / timed),
      p95: quantileOf(durations, 0.95),
    },
  }
}

/** Normalizes a host like the edge does. */
const hostOf = (given: string) => given.toLowerCase().replace(/\.$/, '')

export async function readProjectTraffic(
  db: Db,
  actor: Actor,
  key: string,
  query: RangeQuery & { host?: string },
): Promise<Static<typeof ProjectTraffic>> {
  const range = rangeOf(query, maxBuckets)
  const { id: projectId } = await findProject(db, actor, key)
  const { seconds, ...within } = selection(range)
  const host = query.host === undefined ? null : hostOf(query.host)
  const [rows, hosts] = await Promise.all([
    readTraffic(db, { projectId, host, seconds, ...within }),
    readTrafficHosts(db, { projectId, ...within, limit: maxHosts }),
  ])
  const buckets = bucketsOf(rows, edgeColumns, range)
  return {
    ...viewRange(range),
    buckets: buckets.map((counts, bucket) => ({ at: timeOf(range, bucket), ...viewCounts(counts) })),
    totals: viewCounts(sumOf(buckets, edgeColumns)),
    hosts: hosts.map(({ host, requests, bytes }) => ({
      host: host === '' ? null : host,
      requests: Number(requests),
      bytes: Number(bytes),
    })),
  }
}

export async function readAccountTraffic(
  db: Db,
  { accountId, projectIds }: Actor,
  query: RangeQuery,
): Promise<Static<typeof AccountTraffic>> {
  const range = rangeOf(query, maxProjectBuckets)
  const owner = { accountId, projectIds }
  const rows = await readTrafficOfProjects(db, { ...owner, ...selection(range), limit: maxProjects })
  const projects = rows.map(({ project, requests, bytes, series }) => ({
    project,
    requests: Number(requests),
    bytes: Number(bytes),
    series: Array.from({ length: range.count }, (_, bucket) => series[bucket] ?? 0),
  }))
  return { ...viewRange(range), projects }
}

function viewQuestions(counts: Counts) {
  const named = <T extends string>(names: readonly T[], at: number) =>
    Object.fromEntries(names.map((name, index) => [name, counts[at + index]!])) as Record<T, number>
  const rcodes = named(answerCodes, questionTypes.length)
  const questions = Object.values(rcodes).reduce((sum, count) => sum + count, 0)
  return { questions, types: named(questionTypes, 0), rcodes }
}

export async function readZoneTraffic(
  db: Db,
  actor: Actor,
  path: string,
  query: RangeQuery,
): Promise<Static<typeof DnsTraffic>> {
  const range = rangeOf(query, maxBuckets)
  const { id: domainId } = await findZone(db, actor, path)
  const buckets = bucketsOf(await readDnsTraffic(db, { domainId, ...selection(range) }), dnsColumns, range)
  return {
    ...viewRange(range),
    buckets: buckets.map((counts, bucket) => ({ at: timeOf(range, bucket), ...viewQuestions(counts) })),
    totals: viewQuestions(sumOf(buckets, dnsColumns)),
  }
}
