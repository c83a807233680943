// Parses a zone file (RFC 1035, with BIND's extensions) into records, and reports the outcome for every line.
import { pointsAtItself } from '../conflicts.ts'
import type { Field } from '../fields.ts'
import { canonicalName, hostTarget, nameWithinZone } from '../names.ts'
import { type Parsed, parsed, refused, shown } from '../parsed.ts'
import { parseRdataFields } from '../rdata/rdata.ts'
import { type RecordType, ttlLimits } from '../record-types.ts'
import { clampedTtl, fileTtl } from '../ttl.ts'
import { typeInZoneFile, typeRefusal } from '../type-names.ts'
import { type Dialect, dialectOf, isPlaceholder, type Line, repair, repairedOwner } from './zone-file-dialects.ts'
import { type ZoneEntry, zoneEntries } from './zone-file-entries.ts'
import { generatedEntry, readTemplate } from './zone-file-generate.ts'
import { createReport, type Outcome, type SkipReason, type ZoneFileReport } from './zone-file-report.ts'

export type ZoneFileRecord = {
  name: string
  type: RecordType
  value: string
  ttl: number
  line: number
  comment?: string
}
export type ZoneFile = ZoneFileReport & {
  records: ZoneFileRecord[]
  dialect: Dialect | null
  // The line at which reading stopped because the file has more than the maximum of records; null if it was read entirely.
  limitExceededAt: number | null
}

// A file that isn't a zone file shouldn't produce a million errors.
const maxErrors = 1000
// How many entries to read between two pauses.
const entriesPerStep = 500
// For all $GENERATE lines together, because one can ask for two billion records. Duplicates aren't limited otherwise.
const maxGenerated = 100_000

type State = {
  zone: string
  dialect: Dialect | null
  records: ZoneFileRecord[]
  // Null after a directive that couldn't be read: a guess would give every later record a wrong name.
  origin: string | null
  owner: string | null
  defaultTtl: number | null
  lastTtl: number | null
  lineOfRecord: Map<string, number>
  generated: number
}

const failed = (detail: string): Outcome => ({ kind: 'refused', detail })
const skipped = (reason: SkipReason, detail: string): Outcome => ({ kind: 'skipped', reason, detail })
const understood: Outcome = { kind: 'understood' }

// After an odd number of backslashes, the last dot is part of its label.
function isAbsolute(raw: string): boolean {
  if (!raw.endsWith('.')) return false
  let at = raw.length - 2
  while (raw[at] === '\\') at--
  return (raw.length - 2 - at) % 2 === 0
}

// "@" and relative names follow $ORIGIN; the result is canonical and absolute.
function absoluteInFile(raw: string, origin: string | null): Parsed<string> {
  if (isAbsolute(raw)) return canonicalName(raw)
  if (origin === null) return refused(`The name ${shown(raw)} is relative to an $ORIGIN that could not be read.`)
  if (raw === '@') return parsed(origin)
  return canonicalName(origin === '.' ? `${raw}.` : `${raw}.${origin}`)
}

function targetInFile(raw: string, state: State): Parsed<string> {
  const name = absoluteInFile(raw, state.origin)
  if (!name.ok || name.value === '.') return name
  return hostTarget(`${name.value}.`, state.zone)
}

function directive(entry: ZoneEntry, state: State): Outcome {
  const [keyword, argument, ...more] = entry.fields
  const name = keyword?.raw.toUpperCase() ?? ''
  if (name === '$INCLUDE')
    return skipped('include', '$INCLUDE is not supported. Import the records of the other file instead.')
  if (name !== '$ORIGIN' && name !== '$TTL')
    return failed(`The directive ${shown(keyword?.raw ?? '')} is not supported.`)
  const usable = argument && !argument.quoted && more.length === 0
  if (name === '$TTL') {
    const ttl = usable ? fileTtl(argument.raw) : null
    if (ttl === null) return failed('$TTL needs one time to live, for example $TTL 3600 or $TTL 1h.')
    state.defaultTtl = ttl
    return understood
  }
  const origin = usable ? absoluteInFile(argument.raw, state.origin) : refused('$ORIGIN needs one name.')
  state.origin = origin.ok ? origin.value : null
  return origin.ok ? understood : failed(origin.detail)
}

type Head = Pick<Line, 'ttl' | 'class' | 'type' | 'rdata'>

// The owner is followed by TTL and class, both optional and in either order, then the type.
function head(fields: Field[]): Parsed<Head> {
  let ttl: number | null = null
  let inClass: string | null = null
  for (const [index, { raw, quoted }] of fields.entries()) {
    const seconds: number | null = ttl === null && !quoted ? fileTtl(raw) : null
    const word = raw.slice(0, 16).toUpperCase()
    if (quoted) return refused(`The text ${shown(raw)} is in quotes where a record type is expected.`)
    if (seconds !== null) ttl = seconds
    else if (inClass === null && /^(?:IN|CH|CHAOS|HS|HESIOD|CS|ANY|NONE|AWS|CLASS\d{1,5})$/.test(word)) inClass = word
    else return parsed({ ttl, class: inClass ?? 'IN', type: raw, rdata: fields.slice(index + 1) })
  }
  return refused('The line has no record type.')
}

// BIND's order: $TTL, or the minimum of an SOA without a TTL, then the last TTL written.
function effectiveTtl(explicit: number | null, state: State): number {
  if (explicit !== null) state.lastTtl = explicit
  return explicit ?? state.defaultTtl ?? state.lastTtl ?? ttlLimits.default
}

function readSoa({ ttl, rdata }: Head, state: State): void {
  if (ttl !== null) state.lastTtl = ttl
  else if (rdata.length === 7) state.defaultTtl ??= fileTtl(rdata[6]?.raw ?? '')
}

// Reads the owner, and returns the remaining fields.
function readOwner(entry: ZoneEntry, state: State, notes: string[]): Parsed<Field[]> {
  if (entry.inheritsOwner) {
    if (state.owner !== null || entry.problem) return parsed(entry.fields)
    return refused('The line starts with a space, but no valid name comes before it.')
  }
  const [first, ...rest] = entry.fields
  const repaired = repairedOwner(first?.raw ?? '', state.dialect, state.zone)
  if (repaired) notes.push(repaired.note)
  const owner = first?.quoted
    ? refused('A name must not be in quotes.')
    : absoluteInFile(repaired?.raw ?? first?.raw ?? '', state.origin)
  state.owner = owner.ok ? owner.value : null
  return owner.ok ? parsed(rest) : owner
}

function readRecord(entry: ZoneEntry, state: State): Outcome {
  const { zone, dialect } = state
  const notes: string[] = []
  const fields = readOwner(entry, state, notes)
  if (!fields.ok) return failed(fields.detail)
  if (entry.problem) return failed(entry.problem.detail)
  const found = head(fields.value)
  if (!found.ok) return failed(found.detail)

  const name = nameWithinZone(state.owner ?? '', zone)
  const line = repair({ ...found.value, comment: entry.comment, notes }, { dialect, isApex: name === '@' })
  const type = typeInZoneFile(line.type)
  if (type === 'SOA') readSoa(line, state)
  const ttl = effectiveTtl(line.ttl, state)
  if (entry.ours && type !== 'ALIAS') return failed('Only ALIAS records are read from comments.')
  if (line.class !== 'IN' && line.class !== 'CLASS1') {
    return skipped('other_class', `The class ${line.class} is not supported; only IN is.`)
  }
  if (name === null) return skipped('out_of_zone', `The name is not in ${zone}.`)
  if (type === 'SOA') return skipped('soa', 'The SOA record is managed by the platform.')
  if (type === 'NS' && name === '@')
    return skipped('apex_ns', 'The NS records of the domain itself are managed by the platform.')
  if (type === 'signing') return skipped('dnssec', typeRefusal(line.type) ?? '')
  if (type === 'foreign') return skipped('unsupported_type', typeRefusal(line.type) ?? '')
  if (type === 'unknown') return failed(`The record type ${shown(line.type)} is not supported.`)
  if (isPlaceholder(line, dialect))
    return skipped('placeholder', 'It refers to web pages of the provider that wrote the file.')

  const value = parseRdataFields(type, line.rdata, (raw) => targetInFile(raw, state))
  if (!value.ok) return failed(value.detail)
  const { comment } = line
  return addRecord({ name, type, value: value.value, ttl, line: entry.line, ...(comment && { comment }) }, state, notes)
}

function addRecord(record: ZoneFileRecord, state: State, notes: string[]): Outcome {
  const { line, ttl } = record
  const circle = pointsAtItself(record, state.zone)
  if (circle) return failed(circle)
  const key = `${record.name} ${record.type} ${record.value}`
  const earlier = state.lineOfRecord.get(key)
  if (earlier !== undefined) return skipped('duplicate', `The same record is already on line ${earlier}.`)
  state.lineOfRecord.set(key, line)
  const clamped = clampedTtl(ttl)
  if (clamped !== ttl) {
    const limits = `${ttlLimits.min}-${ttlLimits.max}`
    notes.push(`The TTL ${ttl} is outside ${limits} seconds; ${clamped} is used.`)
  }
  state.records.push({ ...record, ttl: clamped })
  return { kind: 'imported', notes }
}

// Creates all records of a $GENERATE line. Stops at the first one that can't be imported, because the others are like it.
function* generate(entry: ZoneEntry, state: State, maxRecords: number): Generator<undefined, Outcome> {
  const template = readTemplate(entry)
  if (!template.ok) return failed(template.detail)
  const { start, stop, step } = template.value
  const notes = new Set<string>()
  // One more than the maximum shows that the file has too many.
  const max = Math.min(maxGenerated, maxRecords + 1)
  for (let number = start; number <= stop && state.records.length <= maxRecords; number += step) {
    if (++state.generated > max) return failed(`A file can generate at most ${max} records.`)
    const one = generatedEntry(entry, template.value, number)
    const outcome = one.ok ? readRecord(one.value, state) : failed(one.detail)
    if (outcome.kind === 'refused') return failed(`With ${number} in place of $: ${outcome.detail}`)
    if (outcome.kind === 'skipped' && outcome.reason !== 'duplicate') return outcome
    if (outcome.kind === 'imported') for (const note of outcome.notes) notes.add(note)
    if (state.generated % entriesPerStep === 0) yield
  }
  return { kind: 'imported', notes: [...notes].slice(0, 1) }
}

function directiveOf({ inheritsOwner, ours, problem, fields: [first] }: ZoneEntry): string | null {
  if (inheritsOwner || ours || problem || !first || first.quoted) return null
  return first.raw.startsWith('$') ? first.raw.toUpperCase() : null
}

// Reads in steps, so that the caller can do other work in between.
export function* readZoneFileInSteps(
  text: string,
  zone: string,
  maxRecords = Number.POSITIVE_INFINITY,
): Generator<undefined, ZoneFile> {
  const { report, add } = createReport()
  const origin = canonicalName(zone)
  const file: ZoneFile = Object.assign(report, { records: [], dialect: dialectOf(text), limitExceededAt: null })
  if (!origin.ok) {
    file.errors.push({ line: 1, detail: origin.detail })
    return file
  }
  const state: State = {
    zone: origin.value,
    dialect: file.dialect,
    records: file.records,
    origin: origin.value,
    owner: null,
    defaultTtl: null,
    lastTtl: null,
    lineOfRecord: new Map(),
    generated: 0,
  }
  let entries = 0
  for (const entry of zoneEntries(text)) {
    if (++entries % entriesPerStep === 0) yield
    const { owner, lastTtl } = state
    const name = directiveOf(entry)
    const outcome =
      name === '$GENERATE'
        ? yield* generate(entry, state, maxRecords)
        : name === null
          ? readRecord(entry, state)
          : directive(entry, state)
    // To other programs this line is a comment, so it must not affect the next line. Nor do generated records set the next
    // line's owner.
    if (entry.ours || name === '$GENERATE') Object.assign(state, { owner }, entry.ours && { lastTtl })
    if (file.records.length > maxRecords) {
      file.limitExceededAt = entry.line
      break
    }
    add(entry, outcome)
    if (file.errors.length === maxErrors) {
      file.errors.push({ line: entry.line, detail: `Reading stopped here after ${maxErrors} errors.` })
      break
    }
  }
  return file
}

export function readZoneFile(text: string, zone: string): ZoneFile {
  const steps = readZoneFileInSteps(text, zone)
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
  }
}
