// SQL statements of traffic: adding counts, and reading sums.
import {
  int4,
  int8,
  json,
  optional,
  statement,
  text,
  textArray,
  timestamptz,
} from '../../platform/database/statement.ts'
import { dnsColumns, edgeColumns, type RollupStep } from '../../schemas/traffic-columns.ts'
import { isOwned, ownerIn } from '../projects/index.ts'

const added = {
  source: text(),
  seq: int4(),
  at: timestamptz(),
  steps: textArray<RollupStep>(),
  rows: json<{ owner: string; host: string; counts: number[] }[]>(),
}

type Target = { table: string; owners: string; key: string[]; columns: readonly string[] }

/**
 * Adds rows to the stored counts. A part that arrives twice has no effect. Locks owners against deletion first, and
 * upserts rows in the order of their keys to avoid deadlocks.
 */
function addTo({ table, owners, key, columns }: Target) {
  return (p: { [K in keyof typeof added]: string }) => `
    WITH fresh AS (
      INSERT INTO traffic_source AS s (id, seq, at) VALUES (${p.source}, ${p.seq}, now())
      ON CONFLICT (id) DO UPDATE SET seq = excluded.seq, at = excluded.at WHERE s.seq < excluded.seq RETURNING id
    ), given AS (
      SELECT * FROM json_to_recordset(${p.rows}) AS given(owner text, host text, counts bigint[])
    ), owner AS (
      SELECT id FROM ${owners} WHERE id IN (SELECT owner FROM given) ORDER BY id FOR KEY SHARE
    ), added AS (
      INSERT INTO ${table} AS t (${key.join(', ')}, ${columns.join(', ')})
      SELECT owner.id, s.step, date_trunc(s.step, ${p.at}, 'UTC')${key.includes('host') ? ', g.host' : ''},
        ${columns.map((_name, index) => `sum(g.counts[${index + 1}])`).join(', ')}
      FROM fresh CROSS JOIN unnest(${p.steps}) AS s(step) CROSS JOIN given g JOIN owner ON owner.id = g.owner
      GROUP BY ${key.map((_name, index) => index + 1).join(', ')}
      ORDER BY ${key.map((_name, index) => index + 1).join(', ')}
      ON CONFLICT (${key.join(', ')}) DO UPDATE
        SET ${columns.map((name) => `${name} = t.${name} + excluded.${name}`).join(', ')}
      RETURNING 1
    )
    SELECT count(*)::integer AS added FROM added`
}

export const addTraffic = statement('traffic.add', {
  reason: 'INSERT … SELECT',
  in: added,
  out: { added: int4() },
  sql: addTo({ table: 'traffic', owners: 'project', key: ['project_id', 'step', 'at', 'host'], columns: edgeColumns }),
})

export const addDnsTraffic = statement('traffic.addDns', {
  reason: 'INSERT … SELECT',
  in: added,
  out: { added: int4() },
  sql: addTo({ table: 'dns_traffic', owners: 'domain', key: ['domain_id', 'step', 'at'], columns: dnsColumns }),
})

/** A time range of the rollups by `step`, in buckets of `seconds`. */
const range = { step: text<RollupStep>(), from: timestamptz(), to: timestamptz() }
const buckets = { ...range, seconds: int4() }
type Range = { [K in keyof typeof range]: string }
type Buckets = { [K in keyof typeof buckets]: string }

const isWithin = (p: Range) => `t.step = ${p.step} AND t.at >= ${p.from} AND t.at < ${p.to}`
const bucket = (p: Buckets) => `floor(extract(epoch FROM t.at - ${p.from}) / ${p.seconds})::integer`
const requests = 'sum(t.s1 + t.s2 + t.s3 + t.s4 + t.s5)::bigint'

function sums(columns: readonly string[]): string {
  return columns.map((name) => `sum(t.${name})::bigint AS ${name}`).join(', ')
}

function each<K extends string>(columns: readonly K[]) {
  return Object.fromEntries(columns.map((name) => [name, int8()])) as Record<K, ReturnType<typeof int8>>
}

/** Buckets of a project or of one of its hosts, without empty ones. */
export const readTraffic = statement('traffic.read', {
  reason: 'hot read',
  in: { projectId: text(), host: optional(text()), ...buckets },
  out: { bucket: int4(), ...each(edgeColumns) },
  sql: (p) => `
    SELECT ${bucket(p)} AS bucket, ${sums(edgeColumns)} FROM traffic t
    WHERE t.project_id = ${p.projectId} AND ${isWithin(p)} AND (${p.host} IS NULL OR t.host = ${p.host})
    GROUP BY 1 ORDER BY 1`,
})

/** The hosts of a project with the most requests. */
export const readTrafficHosts = statement('traffic.hosts', {
  reason: 'hot read',
  in: { projectId: text(), ...range, limit: int4() },
  out: { host: text(), requests: int8(), bytes: int8() },
  sql: (p) => `
    SELECT t.host, ${requests} AS requests, sum(t.bytes)::bigint AS bytes FROM traffic t
    WHERE t.project_id = ${p.projectId} AND ${isWithin(p)}
    GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT ${p.limit}`,
})

/** Requests to all projects of the actor, busiest first; `series` has the non-empty buckets. */
export const readTrafficOfProjects = statement('traffic.projects', {
  reason: 'hot read',
  in: { ...ownerIn, ...buckets, limit: int4() },
  out: { project: text(), requests: int8(), bytes: int8(), series: json<Record<string, number>>() },
  sql: (p) => `
    SELECT p.name AS project, COALESCE(b.requests, 0)::bigint AS requests, COALESCE(b.bytes, 0)::bigint AS bytes,
      COALESCE(b.series, '{}'::json) AS series
    FROM project p CROSS JOIN LATERAL (
      SELECT sum(s.requests) AS requests, sum(s.bytes) AS bytes, json_object_agg(s.bucket, s.requests) AS series FROM (
        SELECT ${bucket(p)} AS bucket, ${requests} AS requests, sum(t.bytes) AS bytes FROM traffic t
        WHERE t.project_id = p.id AND ${isWithin(p)} GROUP BY 1) s) b
    WHERE ${isOwned(p, 'p.account_id', 'p.id')}
    ORDER BY requests DESC, p.name LIMIT ${p.limit}`,
})

/** Buckets of a zone, without empty ones. */
export const readDnsTraffic = statement('traffic.readDns', {
  reason: 'hot read',
  in: { domainId: text(), ...buckets },
  out: { bucket: int4(), ...each(dnsColumns) },
  sql: (p) => `
    SELECT ${bucket(p)} AS bucket, ${sums(dnsColumns)} FROM dns_traffic t
    WHERE t.domain_id = ${p.domainId} AND ${isWithin(p)}
    GROUP BY 1 ORDER BY 1`,
})
