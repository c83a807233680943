// Bodies and queries made from a valid one: some places changed, removed, wrapped or added, within or beyond the schema.
import fc from 'fast-check'
import type { Operation, Schema } from '../access/operations.ts'
import { hostileCursor } from './addresses.ts'
import { dates, hostileKey, hostileText, hostileValue, literal } from './values.ts'

type Place = { path: string[]; schema: Schema }

/** Every field that the schema knows, and every place that the value has. */
export function placesOf(schema: Schema, value: unknown, path: string[] = []): Place[] {
  const found: Place[] = [{ path, schema: schema ?? {} }]
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      // Not by push(...): a list of 20,000 files has more places than a call takes arguments.
      for (const place of placesOf(schema?.items, item, [...path, String(index)])) found.push(place)
    }
    return found
  }
  const fields = value !== null && typeof value === 'object' ? (value as Record<string, unknown>) : {}
  for (const key of new Set([...Object.keys(schema?.properties ?? {}), ...Object.keys(fields)])) {
    for (const place of placesOf(schema?.properties?.[key], fields[key], [...path, key])) found.push(place)
  }
  return found
}

/** Values at the very edges of what the schema allows, on both sides. */
function edges(schema: Schema): unknown[] {
  const { minimum, maximum, minLength, maxLength, maxItems } = schema
  return [
    ...(schema.enum ?? []),
    ...[minimum, maximum]
      .filter((limit) => limit !== undefined)
      .flatMap((limit) => [limit - 1, limit, limit + 1, limit + 0.5]),
    ...[minLength, maxLength]
      .filter((limit) => limit !== undefined)
      .flatMap((limit) => [limit - 1, limit, limit + 1])
      .filter((length) => length >= 0)
      .flatMap((length) => ['a'.repeat(length), '😀'.repeat(length)]),
    ...(schema.format === 'date-time' ? dates : []),
    ...(maxItems === undefined ? [] : [Array(maxItems).fill('a'), Array(maxItems + 1).fill('a')]),
    ...([schema.type].flat().includes('integer') ? [literal('1e309'), '1', 2 ** 53, -1, 1.5, null] : []),
    ...([schema.type].flat().includes('boolean') ? ['true', 0, 1, null] : []),
  ]
}

export type Mutation = {
  place: number
  how: 'replace' | 'edge' | 'remove' | 'add' | 'wrap' | 'repeat'
  value: unknown
  key: string
}

export const mutation: fc.Arbitrary<Mutation> = fc.record({
  place: fc.nat(10_000),
  how: fc.constantFrom('replace', 'replace', 'replace', 'edge', 'edge', 'remove', 'add', 'wrap', 'repeat'),
  value: hostileValue,
  key: hostileKey,
})

function put(holder: object, key: string, value: unknown): void {
  // JSON has no such field in a list.
  if (Array.isArray(holder) && key === 'length') return
  // An assignment to __proto__ would not make a field of that name.
  Object.defineProperty(holder, key, { value, enumerable: true, configurable: true, writable: true })
}

function mutate(body: unknown, schema: Schema, { place, how, value, key }: Mutation): unknown {
  const places = placesOf(schema, body)
  const { path, schema: local } = places[place % places.length]!
  const root = { body: structuredClone(body) }
  let holder: Record<string, unknown> = root
  const steps = ['body', ...path]
  const last = steps.pop()!
  for (const step of steps) {
    const next = Object.hasOwn(holder, step) ? holder[step] : undefined
    if (next === null || typeof next !== 'object') put(holder, step, {})
    holder = holder[step] as Record<string, unknown>
  }
  const old = Object.hasOwn(holder, last) ? holder[last] : undefined
  const known = edges(local)
  if (how === 'remove') delete holder[last]
  else if (how === 'wrap') put(holder, last, place % 2 ? [old] : { value: old })
  else if (how === 'repeat') put(holder, last, Array.isArray(old) ? [...old, ...old] : [old, old])
  else if (how === 'add' && old !== null && typeof old === 'object') put(old, key, value)
  else put(holder, last, how === 'edge' && known.length > 0 ? known[place % known.length] : value)
  return root.body
}

/** The body after all mutations; of a text, with hostile text put in. */
export function mutated(operation: Operation, body: unknown, mutations: Mutation[]): unknown {
  if (typeof body !== 'string') return mutations.reduce((made, one) => mutate(made, operation.body!.schema, one), body)
  return mutations.reduce((text: string, { place, how, value }) => {
    const at = place % (text.length + 1)
    if (how === 'remove') return text.slice(0, at)
    if (how === 'repeat') return text.repeat(3)
    return `${text.slice(0, at)}${typeof value === 'string' ? value : JSON.stringify(value)}${text.slice(at)}`
  }, body)
}

export type Pair = [name: string, value: string]

function queryValue(name: string, schema: Schema): fc.Arbitrary<string> {
  if (name === 'cursor') return hostileCursor
  const known = edges(schema).map(String)
  return known.length === 0 ? hostileText : fc.oneof({ weight: 2, arbitrary: fc.constantFrom(...known) }, hostileText)
}

/** Parameters of the operation and strangers, some of them twice. */
export function queryOf(operation: Operation): fc.Arbitrary<Pair[]> {
  const known = operation.query.map(({ name, schema }) => fc.tuple(fc.constant(name), queryValue(name, schema)))
  const strange = fc.tuple(hostileKey, hostileText)
  const pair = fc.oneof(...known.map((arbitrary) => ({ weight: 3, arbitrary })), { weight: 1, arbitrary: strange })
  return fc.array(pair, { maxLength: 4 }).map((pairs) => pairs.map(harmless))
}

// A wait that is allowed would be kept.
function harmless([name, value]: Pair): Pair {
  const isKept = name === 'wait' && (value === 'served' || (Number(value) > 0 && Number(value) <= 60))
  return isKept ? [name, '61'] : [name, value]
}

export function toQuery(pairs: Pair[]): string {
  if (pairs.length === 0) return ''
  return `?${pairs.map((pair) => pair.map((text) => encodeURIComponent(text.toWellFormed())).join('=')).join('&')}`
}
