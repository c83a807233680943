// Helpers for reading rdata: fields as numbers, host names and hexadecimal data.
import type { Field } from '../fields.ts'
import { hexOctets } from '../octets.ts'
import { type Parsed, parsed, refused, shown } from '../parsed.ts'

// API values and zone files differ only in how a target name becomes absolute.
export type ResolveTarget = (raw: string) => Parsed<string>

export type RdataReader = (fields: Field[], resolve: ResolveTarget) => Parsed<string>

export function plainTexts(fields: Field[], min: number, max: number): Parsed<string[]> {
  if (fields.length < min || fields.length > max) {
    const expected = min === max ? `${min}` : max === Number.POSITIVE_INFINITY ? `at least ${min}` : `${min}-${max}`
    return refused(`The value has ${fields.length} ${fields.length === 1 ? 'field' : 'fields'} instead of ${expected}.`)
  }
  const quoted = fields.find((field) => field.quoted)
  if (quoted) return refused(`The field ${shown(quoted.raw)} must not be in quotes.`)
  return parsed(fields.map((field) => field.raw))
}

export function wholeNumber(text: string | undefined, max: number): number | null {
  if (text === undefined || !/^\d{1,10}$/.test(text)) return null
  const number = Number(text)
  return number <= max ? number : null
}

export type NumberField = {
  label: string
  max: number
  allowed?: readonly number[]
  names?: ReadonlyMap<string, number>
}

export function numbersOf(texts: string[], expected: readonly NumberField[]): Parsed<number[]> {
  const numbers: number[] = []
  for (const [index, { label, max, allowed, names }] of expected.entries()) {
    const text = texts[index] ?? ''
    const number = names?.get(text.toUpperCase()) ?? wholeNumber(text, max)
    if (number === null || (allowed && !allowed.includes(number))) {
      const range = allowed ? `one of ${allowed.join(', ')}` : `a whole number from 0 to ${max}`
      return refused(`The ${label} ${shown(text)} is not ${range}.`)
    }
    numbers.push(number)
  }
  return parsed(numbers)
}

export function hexData(digits: string, label: string, octets: number | undefined, max: number): Parsed<string> {
  const data = hexOctets(digits)
  if (data === null) return refused(`The ${label} ${shown(digits)} is not an even number of hexadecimal digits.`)
  if (octets !== undefined && data.length !== octets * 2) {
    return refused(`The ${label} has ${data.length} hexadecimal digits; its type needs ${octets * 2}.`)
  }
  if (data.length > max * 2) return refused(`The ${label} has more than ${max} octets.`)
  return parsed(data)
}
