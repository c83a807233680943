// SVCB and HTTPS values (RFC 9460): priority, target, and parameters sorted by key.
import { type Field, splitFields } from '../fields.ts'
import { octetsOf } from '../octets.ts'
import { type Parsed, parsed, refused, shown } from '../parsed.ts'
import { maxRdataOctets } from '../record-types.ts'
import { numbersOf, plainTexts, type RdataReader } from './rdata-fields.ts'
import { numbersIn, paramKey, paramName, paramToText, paramToWire, portableParam } from './svcb-params.ts'

export type SvcbParam = { key: number; wire: Buffer }

type ParamText = { name: string; raw: string }

// A quoted value is a separate field that directly follows its key=.
function paramTexts(fields: Field[]): Parsed<ParamText[]> {
  const texts: ParamText[] = []
  for (let at = 0; at < fields.length; at++) {
    const field = fields[at]
    if (!field) break
    if (field.quoted) return refused(`The text ${shown(field.raw)} has no key, as in alpn="h2".`)
    const equals = field.raw.indexOf('=')
    const name = equals === -1 ? field.raw : field.raw.slice(0, equals)
    let raw = equals === -1 ? '' : field.raw.slice(equals + 1)
    const next = fields[at + 1]
    if (next?.adjacent && next.quoted) {
      if (raw !== '' || equals === -1)
        return refused(`The parameter ${shown(field.raw)} is not separated from the quoted string after it.`)
      raw = next.raw
      at++
      if (fields[at + 1]?.adjacent) return refused(`The parameter ${shown(name)} continues after its closing quote.`)
    }
    texts.push({ name, raw })
  }
  return parsed(texts)
}

function readParams(fields: Field[]): Parsed<SvcbParam[]> {
  const texts = paramTexts(fields)
  if (!texts.ok) return texts
  const params = new Map<number, Buffer>()
  for (const { name, raw } of texts.value) {
    const key = paramKey(name)
    if (key === null) {
      return refused(`The parameter ${shown(name)} is not supported. Write other parameters as key65333="value".`)
    }
    if (params.has(key)) return refused(`The parameter ${paramName(key)} is given twice.`)
    const octets = octetsOf(raw)
    if (!octets.ok) return octets
    const wire = paramToWire(name, key, octets.value)
    if (!wire.ok) return wire
    params.set(key, wire.value)
  }
  return parsed([...params].map(([key, wire]) => ({ key, wire })).sort((a, b) => a.key - b.key))
}

function inconsistency(params: SvcbParam[]): string | null {
  const keys = new Set(params.map((param) => param.key))
  const mandatory = params.find((param) => param.key === 0)
  const missing = mandatory && numbersIn(mandatory.wire).find((key) => !keys.has(key))
  if (missing !== undefined) return `The mandatory parameter names ${paramName(missing)}, which is missing.`
  if (keys.has(2) && !keys.has(1)) return 'The no-default-alpn parameter requires an alpn parameter.'
  return null
}

export const parseSvcb: RdataReader = (fields, resolve) => {
  const texts = plainTexts(fields.slice(0, 2), 2, 2)
  if (!texts.ok) return texts
  const priority = numbersOf(texts.value, [{ label: 'priority', max: 65_535 }])
  if (!priority.ok) return priority
  const target = resolve(texts.value[1] ?? '')
  if (!target.ok) return target
  if (fields[2]?.adjacent) return refused('The target must be followed by a space.')
  if (priority.value[0] === 0 && fields.length > 2) {
    return refused('With priority 0 the record is an alias and carries no parameters; use priority 1 or more.')
  }
  const params = readParams(fields.slice(2))
  if (!params.ok) return params
  const canonical = [`${priority.value[0]}`, target.value]
  for (const { key, wire } of params.value) {
    const text = paramToText(key, wire)
    if (!text.ok) return text
    canonical.push(text.value)
  }
  const inconsistent = inconsistency(params.value)
  if (inconsistent) return refused(inconsistent)
  const size = params.value.reduce((sum, param) => sum + 4 + param.wire.length, 2 + target.value.length + 2)
  if (size > maxRdataOctets) return refused(`The value is longer than ${maxRdataOctets} octets.`)
  return parsed(canonical.join(' '))
}

// The parameters of a canonical value, in wire format.
export function svcbParams(value: string): SvcbParam[] {
  const fields = splitFields(value)
  if (!fields.ok) return []
  const params = readParams(fields.value.slice(2))
  return params.ok ? params.value : []
}

// The value in the form that every program can read, with a trailing dot after the target.
export function portableSvcb(value: string): string {
  const [priority = '', target = ''] = value.split(' ', 2)
  const params = svcbParams(value).map(({ key, wire }) => portableParam(key, wire))
  return [priority, target.endsWith('.') ? target : `${target}.`, ...params].join(' ')
}
