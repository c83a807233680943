// Zones as a whole: written as a zone file, replaced by one, and the records that the service adds itself.
import { isIPv6 } from 'node:net'
import type { Static } from '@sinclair/typebox'
import type { Config } from '../../config.ts'
import { conflictsWithin, hiddenBelow } from '../../dns/conflicts.ts'
import { rrsetTtl } from '../../dns/ttl.ts'
import { readZoneFile, type ZoneFile } from '../../dns/zone-file-reader.ts'
import { writeZoneFile } from '../../dns/zone-file-writer.ts'
import type { Database, Db } from '../../platform/database.ts'
import { Fault, type FieldError, invalidField } from '../../platform/errors.ts'
import { newId } from '../../platform/ids.ts'
import { highestListedChanges, type ZoneImport } from '../../schemas/zones.ts'
import { nameserversOf } from '../domains/nameservers.ts'
import { inProjectsOf } from '../projects/projects.ts'
import type { Actor } from '../tokens/actor.ts'
import { viewCreated } from './batches.ts'
import { findZone, findZoneToChange, type RecordRow, readRecords, viewRecord, zoneInPath } from './dns-records.ts'
import { type Changes, writeChanges } from './record-changes.ts'
import type { RecordDraft } from './record-rules.ts'

// Secondaries are ours and are told of every change, so the timers only matter when something is broken. The minimum
// is how long resolvers remember that a name does not exist: a record that was just made should not wait for long.
export const soaTimers = { refresh: 3600, retry: 600, expire: 604_800, minimum: 60, ttl: 3600 } as const

/** TTL of the addresses that the nameservers add to a zone; short, because a record of the zone replaces them. */
export const generatedTtl = 60
export const generatedNames = ['@', 'www'] as const
const addressTypes = new Set(['A', 'AAAA', 'ALIAS', 'CNAME'])

export function soaOf({ nameservers }: Pick<Config, 'nameservers'>, zone: string) {
  return { mname: nameservers[0]!, rname: `hostmaster.${zone}`, ...soaTimers }
}

export type EdgeAddresses = { edge: Pick<Config['edge'], 'addresses'> }

/** Records that the nameservers add: the addresses of the edge, where the zone has none of its own. */
export function generatedRecords(
  { edge }: EdgeAddresses,
  records: Iterable<{ name: string; type: string }>,
): { name: string; type: 'A' | 'AAAA'; value: string; ttl: number }[] {
  const addressed = new Set<string>()
  for (const { name, type } of records) if (addressTypes.has(type)) addressed.add(name)
  return generatedNames
    .filter((name) => !addressed.has(name))
    .flatMap((name) =>
      edge.addresses.map((value) => ({
        name,
        type: isIPv6(value) ? ('AAAA' as const) : ('A' as const),
        value,
        ttl: generatedTtl,
      })),
    )
}

export async function exportZone(
  db: Database,
  options: Pick<Config, 'nameservers'> & EdgeAddresses,
  actor: Actor,
  path: string,
): Promise<string> {
  const name = zoneInPath(path)
  // One snapshot, so that serial and records belong together.
  const zone = await db.$transaction(
    (db) =>
      db.domain.findFirst({
        where: { ...inProjectsOf(actor), name },
        select: { serial: true, nameservers: true, records: true },
      }),
    { isolationLevel: 'RepeatableRead' },
  )
  if (!zone) throw new Fault('not_found', `There is no domain ${name}.`)
  const { serial, records } = zone
  const nameservers = nameserversOf(options.nameservers, zone.nameservers)
  return writeZoneFile({
    zone: name,
    serial,
    nameservers,
    soa: soaOf({ nameservers }, name),
    records: records as RecordRow[],
    generated: generatedRecords(options, records),
  })
}

const highestCommentLength = 200
const highestRefusedLines = 100
// A MiB holds some 80,000 records, which take longer to write than other transactions may.
const importTimeoutMs = 60_000

function lineError(line: number, code: string, detail: string): FieldError {
  return { in: 'body', pointer: `#/lines/${line}`, code, detail }
}

/** The records of a file, checked against each other; the error names every line that is wrong. */
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

/** The changes after which the zone has exactly the drafts; records that are in both keep their ids. */
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
      // Most programs drop comments, so a line without a comment does not delete one.
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
  { text, dryRun }: { text: string; dryRun: boolean },
): Promise<Static<typeof ZoneImport>> {
  // Reading a large file takes a while: before the transaction, and only for a zone that is there.
  const { name } = await findZone(db, actor, path)
  const file = readFile(text, name)
  const work = async (db: Db) => {
    const zone = await findZoneToChange(db, actor, path)
    const existing = await readRecords(db, zone, {})
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
    return viewImport(zone.name, { changes, file, dryRun, serial })
  }
  return db.$transaction(work, { timeout: importTimeoutMs })
}

type Imported = {
  changes: Changes & { unchanged: number }
  file: ZoneFile & { drafts: RecordDraft[] }
  dryRun: boolean
  serial: number
}

function viewImport(zone: string, { changes, file, dryRun, serial }: Imported): Static<typeof ZoneImport> {
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
