// Zones as a whole: written as a zone file, replaced by one, and the records that the service adds itself.
import { isIPv6 } from 'node:net'
import type { Static } from '@sinclair/typebox'
import type { Actor } from '../actor.ts'
import type { Config } from '../config.ts'
import { type Database, type Db, rows, sql } from '../db.ts'
import { conflictsWithin, hiddenBelow } from '../dns/conflicts.ts'
import { rrsetTtl } from '../dns/ttl.ts'
import { readZoneFile, type ZoneFile } from '../dns/zone-file-reader.ts'
import { writeZoneFile } from '../dns/zone-file-writer.ts'
import { Fault, type FieldError, invalidField } from '../errors.ts'
import { newId } from '../ids.ts'
import { highestListedChanges, type ZoneImport } from '../schemas/zones.ts'
import { viewCreated } from './dns-batches.ts'
import { type Changes, writeChanges } from './dns-record-changes.ts'
import type { RecordDraft } from './dns-record-rules.ts'
import { findZone, type RecordRow, recordColumns, viewRecord, zoneInPath } from './dns-records.ts'
import { ownedBy } from './projects.ts'

// Secondaries are ours and are told of every change, so the timers only matter when something is broken. The minimum
// is how long resolvers remember that a name does not exist: a record that was just made should not wait for long.
export const soaTimers = { refresh: 3600, retry: 600, expire: 604_800, minimum: 60, ttl: 3600 } as const

/** What the nameservers add where a zone has no address of its own; short, because the first own record ends it. */
export const generatedTtl = 60
export const generatedNames = ['@', 'www'] as const
const addressTypes = new Set(['A', 'AAAA', 'ALIAS', 'CNAME'])

export function soaOf(config: Config, zone: string) {
  return { mname: config.nameservers[0]!, rname: `hostmaster.${zone}`, ...soaTimers }
}

/** Records that the nameservers answer with although they are not in the zone: the edge, where nothing else is said. */
export function generatedRecords(
  config: Config,
  records: Iterable<{ name: string; type: string }>,
): { name: string; type: 'A' | 'AAAA'; value: string; ttl: number }[] {
  const addressed = new Set<string>()
  for (const { name, type } of records) if (addressTypes.has(type)) addressed.add(name)
  return generatedNames
    .filter((name) => !addressed.has(name))
    .flatMap((name) =>
      config.edge.addresses.map((value) => ({
        name,
        type: isIPv6(value) ? ('AAAA' as const) : ('A' as const),
        value,
        ttl: generatedTtl,
      })),
    )
}

export async function exportZone(db: Db, config: Config, actor: Actor, path: string): Promise<string> {
  const zone = zoneInPath(path)
  // One statement, so that the serial is the one of these very records.
  const found = await rows<(RecordRow | { id: null }) & { serial: number }>(
    db,
    sql`SELECT d.serial, ${recordColumns} FROM domain d LEFT JOIN dns_record r ON r.domain_id = d.id
        WHERE d.name = ${zone} AND ${ownedBy(actor, sql`d.account_id`, sql`d.project_id`)}`,
  )
  if (found.length === 0) throw new Fault('not_found', `There is no domain ${zone}.`)
  const records = found.filter((row): row is RecordRow & { serial: number } => row.id !== null)
  return writeZoneFile({
    zone,
    serial: found[0]!.serial,
    nameservers: config.nameservers,
    soa: soaOf(config, zone),
    records,
    generated: generatedRecords(config, records),
  })
}

const highestCommentLength = 200
const highestRefusedLines = 100
// A MiB holds some 80,000 records, whose rows and events take longer than a transaction usually may.
const importTimeoutMs = 60_000

function lineError(line: number, code: string, detail: string): FieldError {
  return { in: 'body', pointer: `#/lines/${line}`, code, detail }
}

/** The records of a file, checked against each other; every line that is wrong is named at once. */
function readFile(text: string, zone: string): ZoneFile & { drafts: RecordDraft[] } {
  const file = readZoneFile(text, zone)
  const errors = file.errors.map(({ line, detail }) => lineError(line, 'bad_format', detail))
  for (const { record, conflict } of conflictsWithin(file.records)) {
    const beside = conflict.record ? ` It is on line ${conflict.record.line}.` : ''
    errors.push(lineError(record.line, conflict.code, conflict.detail + beside))
  }
  if (errors.length > 0) {
    const detail = `${errors.length} lines cannot be imported; nothing was changed. The first: ${errors[0]!.detail}`
    throw new Fault('validation_failed', detail, { errors: errors.slice(0, highestRefusedLines) })
  }
  const notes = [...file.notes]
  const drafts = file.records.map(({ type, name, value, ttl, line, comment = '' }) => {
    if (comment.length > highestCommentLength) {
      notes.push({ line, detail: `The comment is cut to ${highestCommentLength} characters.` })
    }
    const cut = comment.slice(0, highestCommentLength).toWellFormed().trim()
    return { type, name, value, ttl, comment: cut || null }
  })
  return { ...file, notes, drafts }
}

const keyOf = (record: RecordDraft) => `${record.name} ${record.type} ${record.value}`
const setOf = (record: RecordDraft) => `${record.name} ${record.type}`
const oneLine = (comment: string | null) => comment?.replace(/[\s\p{Cc}]+/gu, ' ').trim() ?? ''

/** What it takes to make the zone hold exactly the drafts; records that are in both keep their ids. */
function diffZone(existing: RecordRow[], drafts: RecordDraft[]): Changes & { unchanged: number } {
  const now = new Date()
  const left = new Map(existing.map((row) => [keyOf(row), row]))
  const changes: Changes = { deleted: [], updated: [], created: [] }
  let unchanged = 0
  for (const set of Map.groupBy(drafts, setOf).values()) {
    const pairs = set.map((draft) => ({ draft, before: left.get(keyOf(draft)) }))
    // A file has one ttl for the whole set, the lowest, where the zone may have several. As long as the set answers
    // with the same one, those of the zone stay: importing an export changes nothing.
    const keepTtl = rrsetTtl(pairs.map(({ draft, before }) => before ?? draft)) === rrsetTtl(set)
    for (const { draft, before } of pairs) {
      if (!before) {
        changes.created.push({ ...draft, id: newId('rec'), createdAt: now, updatedAt: now })
        continue
      }
      left.delete(keyOf(draft))
      // Most programs drop comments on the way, so a line without one takes none away.
      const commented = draft.comment !== null && draft.comment !== oneLine(before.comment)
      const ttl = keepTtl ? before.ttl : draft.ttl
      if (!commented && ttl === before.ttl) unchanged++
      else {
        const comment = commented ? draft.comment : before.comment
        changes.updated.push({ before, after: { ...before, ttl, comment, updatedAt: now } })
      }
    }
  }
  changes.deleted.push(...left.values())
  return { ...changes, unchanged }
}

/** Replaces the records of a zone by those of a file, or tells what that would change. */
export async function importZone(
  db: Database,
  actor: Actor,
  path: string,
  text: string,
  dryRun: boolean,
): Promise<Static<typeof ZoneImport>> {
  // Reading a large file takes a while: before the transaction, and only for a zone that is there.
  const { name } = await findZone(db, actor, path)
  const file = readFile(text, name)
  const work = async (db: Db) => {
    const zone = await findZone(db, actor, path, true)
    const existing = await rows<RecordRow>(
      db,
      sql`SELECT ${recordColumns} FROM dns_record r WHERE r.domain_id = ${zone.id} ORDER BY r.name, r.id`,
    )
    // A file for another domain has nothing but lines that are skipped, and would empty the zone.
    if (file.drafts.length === 0 && existing.length > 0) {
      throw invalidField(
        '#',
        'no_records',
        `The file has no record of ${name}; its ${existing.length} would be deleted.`,
      )
    }
    const changes = diffZone(existing, file.drafts)
    const serial = dryRun ? zone.serial : await writeChanges(db, actor, zone, changes)
    return viewImport(zone.name, changes, file, dryRun, serial)
  }
  return db.$transaction(work, { timeout: importTimeoutMs })
}

function viewImport(
  zone: string,
  changes: Changes & { unchanged: number },
  file: ZoneFile & { drafts: RecordDraft[] },
  dryRun: boolean,
  serial: number,
): Static<typeof ZoneImport> {
  const { deleted, updated, created, unchanged } = changes
  const hidden = hiddenBelow(file.drafts, zone)
  const lists = [deleted, updated, created, file.skipped, file.notes, hidden]
  const first = <T>(list: T[]): T[] => list.slice(0, highestListedChanges)
  return {
    dryRun,
    created: created.length,
    updated: updated.length,
    deleted: deleted.length,
    unchanged,
    changes: {
      deleted: first(deleted).map((row) => viewRecord(zone, row)),
      updated: first(updated).map(({ before, after }) => ({
        before: viewRecord(zone, before),
        after: viewRecord(zone, after),
      })),
      created: first(created).map((row) => viewCreated(zone, row, dryRun)),
    },
    skipped: first(file.skipped),
    notes: first(file.notes),
    hidden: first(hidden).map(({ record: { name, type, value }, delegation }) => ({ name, type, value, delegation })),
    truncated: lists.some((list) => list.length > highestListedChanges),
    serial,
  }
}
