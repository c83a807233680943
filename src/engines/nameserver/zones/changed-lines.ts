// Finds the lines that differ between two versions of a zone, without parsing a whole large zone for one record.
import { typeNumbers } from '../../../dns/packet/numbers.ts'
import { wireName } from '../../../dns/packet/wire-names.ts'
import { isWithin, type OutsideAddresses } from './lookup.ts'
import { keyOf, linesOf, RecordsByName, type ZoneRecords } from './zone-records.ts'

/** A line contains type, ttl, name and value. */
export const nameOf = (line: string) => line.split(' ', 3)[2]!

// Each name takes a search through the text. For more names than this, the text is read line by line instead.
const maxSearched = 32

// Two thousand lines, some ten milliseconds on the event loop. After a larger change, secondaries get the whole zone.
const maxCompared = 64 * 1024

/** Names whose lines differ between the two; null if too much differs. */
export function changedNames(before: ZoneRecords, after: ZoneRecords): Set<string> | null {
  if (typeof before === 'string' && typeof after === 'string') return changedInTexts(before, after)
  if (typeof before === 'string' || typeof after === 'string') return null
  const names = changedInTexts(before.extras, after.extras)
  const keys = before.differing(after)
  if (!names || !keys) return null
  for (const key of keys)
    for (const line of linesOf(before.linesAt(key) ?? after.linesAt(key)!)) names.add(nameOf(line))
  return names
}

function changedInTexts(before: string, after: string): Set<string> | null {
  const shorter = Math.min(before.length, after.length)
  let start = 0
  while (start < shorter && before.charCodeAt(start) === after.charCodeAt(start)) start++
  // The common prefix and suffix end at line boundaries, so that only whole lines are skipped.
  start = start === 0 ? 0 : before.lastIndexOf('\n', start - 1) + 1
  let tail = 0
  const maxTail = shorter - start
  while (tail < maxTail && before.charCodeAt(before.length - 1 - tail) === after.charCodeAt(after.length - 1 - tail)) {
    tail++
  }
  const lineEnd = before.indexOf('\n', before.length - tail)
  tail = lineEnd < 0 ? 0 : before.length - lineEnd
  if (before.length + after.length - 2 * (start + tail) > maxCompared) return null
  const old = new Set(linesOf(before.slice(start, before.length - tail)))
  const names = new Set<string>()
  for (const line of linesOf(after.slice(start, after.length - tail))) {
    if (!old.delete(line) && line !== '') names.add(nameOf(line))
  }
  for (const line of old) if (line !== '') names.add(nameOf(line))
  return names
}

function* search(text: string, name: string): Generator<string> {
  const wanted = ` ${name} `
  for (let at = text.indexOf(wanted); at >= 0; ) {
    const start = text.lastIndexOf('\n', at) + 1
    const found = text.indexOf('\n', at)
    const end = found < 0 ? text.length : found
    const line = text.slice(start, end)
    // The match may have been in the value.
    if (nameOf(line) === name) yield line
    at = text.indexOf(wanted, end)
  }
}

/** The lines of these names. */
export function linesNamed(records: ZoneRecords, names: ReadonlySet<string>): string[] {
  if (records instanceof RecordsByName) {
    const own = [...names].flatMap((name) => [...linesOf(records.linesAt(keyOf(name, records.origin)) ?? '')])
    return [...own, ...linesNamed(records.extras, names)]
  }
  if (names.size > maxSearched) return [...linesOf(records)].filter((line) => names.has(nameOf(line)))
  return [...names].flatMap((name) => [...search(records, name)])
}

/** Lines of a type that can be found without reading all lines: ALIAS, or one of the extras. */
export function* linesTyped(records: ZoneRecords, type: string): Generator<string> {
  if (typeof records === 'string') yield* typedIn(records, type)
  else if (type !== 'ALIAS') yield* typedIn(records.extras, type)
  else for (const text of records.aliasTexts()) yield* typedIn(text, type)
}

function* typedIn(text: string, type: string): Generator<string> {
  const wanted = `${type} `
  const next = (from: number) => {
    const found = text.indexOf(`\n${wanted}`, from)
    return found < 0 ? -1 : found + 1
  }
  for (let at = text.startsWith(wanted) ? 0 : next(0); at >= 0; at = next(at)) {
    const end = text.indexOf('\n', at)
    yield text.slice(at, end < 0 ? text.length : end)
  }
}

const targetIn = (line: string) => wireName(line.slice(line.lastIndexOf(' ') + 1))

/** Names with an ALIAS to another name of the zone: their addresses may change without a change at the name itself. */
export function insideAliases(origin: string, records: ZoneRecords, outside: OutsideAddresses): string[] {
  const lines = [...linesTyped(records, 'ALIAS')]
  const isInside = (target: string) => isWithin(target, origin) && !outside.edge(target, typeNumbers.A)
  return lines.filter((line) => isInside(targetIn(line))).map(nameOf)
}
