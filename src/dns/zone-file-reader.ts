// Reads a zone file (RFC 1035, with BIND's extensions) into records, and reports every line without a record.
import type { Field } from './fields.ts'
import { canonicalName, hostTarget, nameWithinZone } from './names.ts'
import { type Parsed, parsed, refused, shown } from './parsed.ts'
import { parseRdata, parseRdataFields } from './rdata.ts'
import { genericPresentation, isGeneric } from './rdata-generic.ts'
import { type RecordType, ttlLimits, typeInZoneFile } from './record-types.ts'
import { clampedTtl, fileTtl } from './ttl.ts'
import { type ZoneEntry, zoneEntries } from './zone-file-entries.ts'

export type ZoneFileRecord = {
  name: string
  type: RecordType
  value: string
  ttl: number
  line: number
  comment?: string
}
export type SkipReason = 'soa' | 'apex_ns' | 'out_of_zone' | 'unsupported_type'
export type SkippedLine = { line: number; text: string; reason: SkipReason }
export type LineDetail = { line: number; detail: string }
export type ZoneFile = {
  records: ZoneFileRecord[]
  // The first of them; of a file with very many, the rest is left out.
  skipped: SkippedLine[]
  // Lines that were imported with a change, the first of them too.
  notes: LineDetail[]
  errors: LineDetail[]
  // Where reading stopped because the file has more records than wanted; null if it was read to its end.
  overfullAt: number | null
}

// A file that is no zone file at all should not come back as a million errors.
const highestErrors = 1000
// A file of many MiB may have a million lines that are skipped.
const highestReported = 2000
// Entries between two pauses of a reader that takes them.
const entriesInAStep = 500

function report<T>(list: T[], item: T): void {
  if (list.length < highestReported) list.push(item)
}

type State = {
  zone: string
  result: ZoneFile
  // Null after a directive that could not be read: guessing would put every later record at a wrong name.
  origin: string | null
  owner: string | null
  defaultTtl: number | null
  lastTtl: number | null
  lineOfRecord: Map<string, number>
}

// "@" and relative names follow $ORIGIN; the result is canonical and absolute.
function absoluteInFile(raw: string, origin: string | null): Parsed<string> {
  if (raw.endsWith('.') && !raw.endsWith('\\.')) return canonicalName(raw)
  if (origin === null) return refused(`The name ${shown(raw)} is relative to an $ORIGIN that could not be read.`)
  if (raw === '@') return parsed(origin)
  return canonicalName(origin === '.' ? `${raw}.` : `${raw}.${origin}`)
}

function targetInFile(raw: string, state: State): Parsed<string> {
  const name = absoluteInFile(raw, state.origin)
  if (!name.ok || name.value === '.') return name
  return hostTarget(`${name.value}.`, state.zone)
}

function directive(entry: ZoneEntry, state: State): string | null {
  const [keyword, argument, ...more] = entry.fields
  const name = keyword?.raw.toUpperCase() ?? ''
  if (name === '$INCLUDE' || name === '$GENERATE') return `${name} is not supported; write its records out.`
  if (name !== '$ORIGIN' && name !== '$TTL') return `The directive ${shown(keyword?.raw ?? '')} is not known.`
  const usable = argument && !argument.quoted && more.length === 0
  if (name === '$TTL') {
    const ttl = usable ? fileTtl(argument.raw) : null
    if (ttl === null) return '$TTL needs one time to live, for example $TTL 3600 or $TTL 1h.'
    state.defaultTtl = ttl
    return null
  }
  const origin = usable ? absoluteInFile(argument.raw, state.origin) : refused('$ORIGIN needs one name.')
  state.origin = origin.ok ? origin.value : null
  return origin.ok ? null : origin.detail
}

type Head = { ttl: number | null; type: string; rdata: Field[] }

// After the owner come TTL and class, in either order and both optional, then the type.
function head(fields: Field[]): Parsed<Head> {
  let ttl: number | null = null
  let classSeen = false
  for (const [index, { raw, quoted }] of fields.entries()) {
    const seconds: number | null = ttl === null && !quoted ? fileTtl(raw) : null
    const word = raw.slice(0, 16).toUpperCase()
    if (quoted) return refused(`The text ${shown(raw)} is in quotes where the record type belongs.`)
    if (seconds !== null) ttl = seconds
    else if (!classSeen && (word === 'IN' || word === 'CLASS1')) classSeen = true
    else if (/^(?:CH|CHAOS|HS|HESIOD|CS|ANY|NONE|CLASS\d{1,5})$/.test(word)) {
      return refused(`The class ${word} is not supported; only IN is.`)
    } else return parsed({ ttl, type: raw, rdata: fields.slice(index + 1) })
  }
  return refused('The line has no record type.')
}

// BIND's order: $TTL, or the minimum of an SOA that has no TTL itself, then the last TTL written.
function effectiveTtl(explicit: number | null, state: State): number {
  if (explicit !== null) state.lastTtl = explicit
  return explicit ?? state.defaultTtl ?? state.lastTtl ?? ttlLimits.default
}

function readSoa({ ttl, rdata }: Head, state: State): void {
  if (ttl !== null) state.lastTtl = ttl
  else if (rdata.length === 7) state.defaultTtl ??= fileTtl(rdata[6]?.raw ?? '')
}

function readRecord(entry: ZoneEntry, state: State): string | null {
  const { line, text } = entry
  const { zone, result } = state
  let fields = entry.fields
  if (!entry.inheritsOwner) {
    const [first, ...rest] = fields
    const owner = first?.quoted
      ? refused('A name must not be in quotes.')
      : absoluteInFile(first?.raw ?? '', state.origin)
    state.owner = owner.ok ? owner.value : null
    if (!owner.ok) return owner.detail
    fields = rest
  }
  if (entry.problem) return entry.problem.detail
  if (state.owner === null) return 'The line begins with a blank, but no name that could be read stands before it.'
  const found = head(fields)
  if (!found.ok) return found.detail

  const type = typeInZoneFile(found.value.type)
  const name = nameWithinZone(state.owner, zone)
  const skip = (reason: SkipReason) => {
    report(result.skipped, { line, text, reason })
    return null
  }
  if (type === 'SOA') readSoa(found.value, state)
  const ttl = effectiveTtl(found.value.ttl, state)
  if (entry.ours && type !== 'ALIAS') return 'Only ALIAS records are read from comments.'
  if (name === null) return skip('out_of_zone')
  if (type === 'SOA') return skip('soa')
  if (type === 'NS' && name === '@') return skip('apex_ns')
  if (type === 'foreign') return skip('unsupported_type')
  if (type === 'unknown') return `The record type ${shown(found.value.type)} is not known.`

  const value = readRdata(type, found.value.rdata, state)
  if (!value.ok) return value.detail
  addRecord({ name, type, value: value.value, ttl, line, ...(entry.comment && { comment: entry.comment }) }, state)
  return null
}

function readRdata(type: RecordType, rdata: Field[], state: State): Parsed<string> {
  if (!isGeneric(rdata)) return parseRdataFields(type, rdata, (raw) => targetInFile(raw, state))
  const presentation = genericPresentation(type, rdata)
  return presentation.ok ? parseRdata(type, presentation.value, state.zone) : presentation
}

function addRecord(record: ZoneFileRecord, { result, lineOfRecord }: State): void {
  const { line, ttl } = record
  const key = `${record.name} ${record.type} ${record.value}`
  const earlier = lineOfRecord.get(key)
  if (earlier !== undefined) {
    report(result.notes, { line, detail: `The same record stands on line ${earlier}; this one is left out.` })
    return
  }
  lineOfRecord.set(key, line)
  const clamped = clampedTtl(ttl)
  if (clamped !== ttl) {
    const limits = `${ttlLimits.lowest}-${ttlLimits.highest}`
    report(result.notes, { line, detail: `The TTL ${ttl} is outside ${limits} seconds; ${clamped} is used.` })
  }
  result.records.push({ ...record, ttl: clamped })
}

// Reads in steps, so that a caller can do other things between them.
export function* readZoneFileInSteps(
  text: string,
  zone: string,
  highestRecords = Number.POSITIVE_INFINITY,
): Generator<undefined, ZoneFile> {
  const origin = canonicalName(zone)
  const result: ZoneFile = { records: [], skipped: [], notes: [], errors: [], overfullAt: null }
  if (!origin.ok) {
    result.errors.push({ line: 1, detail: origin.detail })
    return result
  }
  const state: State = {
    zone: origin.value,
    result,
    origin: origin.value,
    owner: null,
    defaultTtl: null,
    lastTtl: null,
    lineOfRecord: new Map(),
  }
  let entries = 0
  for (const entry of zoneEntries(text)) {
    if (++entries % entriesInAStep === 0) yield
    const [first] = entry.fields
    const isDirective = !entry.inheritsOwner && !entry.ours && first && !first.quoted && first.raw.startsWith('$')
    const { owner, lastTtl } = state
    const detail = isDirective && !entry.problem ? directive(entry, state) : readRecord(entry, state)
    // To every other program this line is a comment, so it must not change what the next one means.
    if (entry.ours) Object.assign(state, { owner, lastTtl })
    if (result.records.length > highestRecords) {
      result.overfullAt = entry.line
      break
    }
    if (detail === null) continue
    result.errors.push({ line: entry.problem?.line ?? entry.line, detail: entry.problem?.detail ?? detail })
    if (result.errors.length === highestErrors) {
      result.errors.push({ line: entry.line, detail: `Reading stopped here, after ${highestErrors} errors.` })
      break
    }
  }
  return result
}

export function readZoneFile(text: string, zone: string): ZoneFile {
  const steps = readZoneFileInSteps(text, zone)
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
  }
}
