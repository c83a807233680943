// Plans imports: compares a zone file with the existing records, without the database.
import type { Static } from '@sinclair/typebox'
import { conflictsWithin, hiddenBelow } from '../../../dns/conflicts.ts'
import { rrsetTtl } from '../../../dns/ttl.ts'
import { readZoneFileInSteps, type ZoneFile, type ZoneFileRecord } from '../../../dns/zone-files/zone-file-reader.ts'
import type { ZoneText } from '../../../dns/zone-files/zone-file-text.ts'
import { Fault, type FieldError } from '../../../platform/errors.ts'
import { newId } from '../../../platform/ids.ts'
import { maxListedChanges, type ZoneImport } from '../../../schemas/zones.ts'
import { type RecordRow, viewCreated, viewRecord } from '../records/dns-records.ts'
import type { Changes } from '../records/record-changes.ts'
import { countSets, type RecordLimits, setOverflow } from '../records/record-limits.ts'
import type { RecordDraft } from '../records/record-rules.ts'

const maxCommentLength = 200
const maxRefusedLines = 100

export type PlannedFile = ZoneFile & { drafts: RecordDraft[] }

const pointerOf = (line: number) => `#/lines/${line}`

function lineError(line: number, code: FieldError['code'], detail: string): FieldError {
  return { in: 'body', pointer: pointerOf(line), code, detail }
}

export type PlanOptions = { limits: RecordLimits; skipUnsupported: boolean }

/** Reads and checks the records of a file in steps; an error lists the invalid lines. */
export function* planFile(
  { text, otherLines }: ZoneText,
  zone: string,
  { limits, skipUnsupported }: PlanOptions,
): Generator<undefined, PlannedFile> {
  const file = yield* readZoneFileInSteps(text, zone, limits.recordsPerZone)
  if (file.limitExceededAt !== null) throw tooManyRecords(file.limitExceededAt, limits)
  const errors = file.errors.map(({ line, detail }) => lineError(line, 'bad_format', detail))
  for (const { line, detail } of skipUnsupported ? [] : file.lossy) {
    errors.push(lineError(line, 'unsupported', `${detail} Send skipUnsupported=true to skip such lines.`))
  }
  yield
  for (const { record, conflict } of conflictsWithin(file.records, zone)) {
    const beside = conflict.record ? ` It is on line ${conflict.record.line}.` : ''
    errors.push(lineError(record.line, conflict.code, conflict.detail + beside))
  }
  if (errors.length > 0) {
    const detail = `${errors.length} lines cannot be imported; nothing was changed. First error: ${errors[0]!.detail}`
    throw new Fault('validation_failed', detail, { errors: errors.slice(0, maxRefusedLines) })
  }
  yield
  checkSets(file.records, limits)
  const notes = [...file.notes]
  const drafts = file.records.map(({ type, name, value, ttl, line, comment = '' }) => {
    if (comment.length > maxCommentLength && notes.length <= maxListedChanges) {
      notes.push({ line, detail: `The comment was truncated to ${maxCommentLength} characters.` })
    }
    const cut = comment.slice(0, maxCommentLength).toWellFormed().trim()
    return { type, name, value, ttl, comment: cut || null }
  })
  for (const line of otherLines) {
    notes.push({ line, detail: 'The line is not UTF-8. Its comment was read as Latin-1, the rest byte by byte.' })
  }
  return { ...file, notes, drafts }
}

function tooManyRecords(line: number, { recordsPerZone: max }: RecordLimits): Fault {
  const detail = `The file has more than ${max} records, the limit for a zone of this account.`
  const errors = [lineError(line, 'quota_exceeded', detail)]
  return new Fault('quota_exceeded', detail, { limit: 'recordsPerZone', used: max + 1, max, errors })
}

function checkSets(records: ZoneFileRecord[], limits: RecordLimits): void {
  const count = countSets(limits)
  for (const record of records) {
    const excess = count(record)
    if (excess) throw setOverflow(record, excess, pointerOf(record.line))
  }
}

const keyOf = (record: RecordDraft) => `${record.name} ${record.type} ${record.value}`
const setOf = (record: RecordDraft) => `${record.name} ${record.type}`
const oneLine = (comment: string | null) => comment?.replace(/[\s\p{Cc}]+/gu, ' ').trim() ?? ''

export type Difference = Changes & { unchanged: number }

/** The changes that make the zone equal to the drafts. Records in both keep their ids. */
export function diffZone(existing: readonly RecordRow[], drafts: readonly RecordDraft[]): Difference {
  const now = new Date()
  const left = new Map(existing.map((row) => [keyOf(row), row]))
  const changes: Changes = { deleted: [], updated: [], created: [] }
  let unchanged = 0
  for (const set of Map.groupBy(drafts, setOf).values()) {
    const pairs = set.map((draft) => ({ draft, before: left.get(keyOf(draft)) }))
    // A file has one TTL per set, the lowest, while the zone may have several. If the effective TTL is the same, keep
    // those of the zone, so that importing an export changes nothing.
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
  for (const row of left.values()) changes.deleted.push(row)
  return { ...changes, unchanged }
}

export type Planned = { changes: Difference; file: PlannedFile; dryRun: boolean; serial: number }

/** The view of an import: full counts, and the first items of every list. */
export function viewImport(zone: string, { changes, file, dryRun, serial }: Planned): Static<typeof ZoneImport> {
  const { deleted, updated, created, unchanged } = changes
  const hidden = hiddenBelow(file.drafts, zone)
  const lists = [deleted, updated, created, file.lines, file.skipped, file.notes, hidden]
  const first = <T>(list: T[]): T[] => list.slice(0, maxListedChanges)
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
    dialect: file.dialect,
    lineCounts: file.counts,
    lines: first(file.lines),
    skipped: first(file.skipped),
    notes: first(file.notes),
    hidden: first(hidden).map(({ record: { name, type, value }, delegation }) => ({ name, type, value, delegation })),
    truncated: lists.some((list) => list.length > maxListedChanges),
    serial,
  }
}
