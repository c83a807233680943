// What every rdata reader needs: its fields by name, as numbers, host names and hexadecimal data.
import type { Field } from '../fields.ts'
import { hexOctets } from '../octets.ts'
import { type Parsed, parsed, refused, shown } from '../parsed.ts'

// How a target name becomes absolute differs between API values and zone files; the rest of the reading does not.
export type ResolveTarget = (raw: string) => Parsed<string>

export type RdataReader = (fields: Field[], resolve: ResolveTarget) => Parsed<string>

export function plainTexts(fields: Field[], least: number, most: number): Parsed<string[]> {
  if (fields.length < least || fields.length > most) {
    const expected =
      least === most ? `${least}` : most === Number.POSITIVE_INFINITY ? `at least ${least}` : `${least}-${most}`
    return refused(`The value has ${fields.length} ${fields.length === 1 ? 'field' : 'fields'} instead of ${expected}.`)
  }
  const quoted = fields.find((field) => field.quoted)
  if (quoted) return refused(`The field ${shown(quoted.raw)} must not be in quotes.`)
  return parsed(fields.map((field) => field.raw))
}

export function wholeNumber(text: string | undefined, highest: number): number | null {
  if (text === undefined || !/^\d{1,10}$/.test(text)) return null
  const number = Number(text)
  return number <= highest ? number : null
}

export type NumberField = {
  called: string
  highest: number
  among?: readonly number[]
  names?: ReadonlyMap<string, number>
}

export function numbersOf(texts: string[], expected: readonly NumberField[]): Parsed<number[]> {
  const numbers: number[] = []
  for (const [index, { called, highest, among, names }] of expected.entries()) {
    const text = texts[index] ?? ''
    const number = names?.get(text.toUpperCase()) ?? wholeNumber(text, highest)
    if (number === null || (among && !among.includes(number))) {
      const range = among ? `one of ${among.join(', ')}` : `a whole number from 0 to ${highest}`
      return refused(`The ${called} ${shown(text)} is not ${range}.`)
    }
    numbers.push(number)
  }
  return parsed(numbers)
}

export function hexData(digits: string, called: string, octets: number | undefined, highest: number): Parsed<string> {
  const data = hexOctets(digits)
  if (data === null) return refused(`The ${called} ${shown(digits)} is not an even number of hexadecimal digits.`)
  if (octets !== undefined && data.length !== octets * 2) {
    return refused(`The ${called} has ${data.length} hexadecimal digits; its type needs ${octets * 2}.`)
  }
  if (data.length > highest * 2) return refused(`The ${called} has more than ${highest} octets.`)
  return parsed(data)
}
