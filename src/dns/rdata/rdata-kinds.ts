// The kinds of fields in rdata: how to read each from text, and how to convert it to wire format and back.
import type { Field } from '../fields.ts'
import { octetsOf, quotedOctets } from '../octets.ts'
import { wireName } from '../packet/wire-names.ts'
import { type Parsed, parsed, refused, shown } from '../parsed.ts'
import { maxRdataOctets } from '../record-types.ts'
import { hexData, type NumberField, numbersOf, type ResolveTarget } from './rdata-fields.ts'
import type { WireReader } from './wire-reader.ts'

export type Kind = {
  // Takes all remaining fields instead of one, for data that tools show in groups.
  rest?: true
  read(fields: Field[], resolve: ResolveTarget): Parsed<string>
  // From a field of the canonical text, without its quotes.
  toWire(raw: string): Buffer
  fromWire(wire: WireReader): string
}

function plain(fields: Field[]): Parsed<string> {
  const quoted = fields.find((field) => field.quoted)
  if (quoted) return refused(`The field ${shown(quoted.raw)} must not be in quotes.`)
  return parsed(fields.map((field) => field.raw).join(''))
}

function octets(raw: string): Buffer {
  const found = octetsOf(raw)
  return found.ok ? found.value : Buffer.alloc(0)
}

export function number(size: 1 | 2, field: Omit<NumberField, 'max'>): Kind {
  const expected = [{ ...field, max: size === 1 ? 255 : 65_535 }]
  return {
    read(fields) {
      const text = plain(fields)
      const numbers = text.ok ? numbersOf([text.value], expected) : text
      return numbers.ok ? parsed(`${numbers.value[0]}`) : numbers
    },
    toWire(raw) {
      const wire = Buffer.alloc(size)
      wire.writeUIntBE(Number(raw), 0, size)
      return wire
    },
    fromWire: (wire) => `${wire.number(size)}`,
  }
}

export function address(
  label: string,
  size: number,
  read: (text: string) => Buffer | null,
  write: (octets: Buffer) => string,
): Kind {
  return {
    read(fields) {
      const text = plain(fields)
      if (!text.ok) return text
      const found = read(text.value)
      return found ? parsed(write(found)) : refused(`${shown(text.value)} is not an ${label} address.`)
    },
    toWire: (raw) => read(raw) ?? Buffer.alloc(0),
    fromWire(wire) {
      const found = wire.take(size)
      return wire.failed ? '' : write(found)
    },
  }
}

function name(mayBeRoot: boolean): Kind {
  return {
    read(fields, resolve) {
      const text = plain(fields)
      const target = text.ok ? resolve(text.value) : text
      const isRoot = target.ok && target.value === '.'
      return isRoot && !mayBeRoot ? refused('The target is the root, which is not a host.') : target
    },
    toWire: (raw) => Buffer.from(wireName(raw), 'latin1'),
    fromWire: (wire) => wire.name(),
  }
}

export const host = name(false)
export const hostOrRoot = name(true)

// A character-string of at most 255 octets.
export const text: Kind = {
  read([field]) {
    const found = octetsOf(field?.raw ?? '')
    if (!found.ok) return found
    const { length } = found.value
    return length > 255
      ? refused(`The text ${shown(field?.raw ?? '')} has ${length} octets; the limit is 255.`)
      : parsed(quotedOctets(found.value))
  },
  toWire(raw) {
    const found = octets(raw)
    return Buffer.concat([Buffer.from([found.length]), found])
  },
  fromWire: (wire) => quotedOctets(wire.take(wire.number(1))),
}

// Text that fills the rest of the rdata, without its own length.
export function lastText(label: string, min: 0 | 1): Kind {
  return {
    read([field]) {
      const found = octetsOf(field?.raw ?? '')
      if (!found.ok) return found
      return found.value.length < min ? refused(`The ${label} is empty.`) : parsed(quotedOctets(found.value))
    },
    toWire: octets,
    fromWire: (wire) => quotedOctets(wire.rest()),
  }
}

export const caaTag: Kind = {
  read(fields) {
    const found = plain(fields)
    if (!found.ok) return found
    const tag = found.value.toLowerCase()
    if (/^[a-z0-9]{1,255}$/.test(tag)) return parsed(tag)
    return refused(`The tag ${shown(tag)} must be 1-255 letters and digits, as in issue, issuewild or iodef.`)
  },
  toWire: text.toWire,
  fromWire: (wire) => wire.take(wire.number(1)).toString('latin1'),
}

export function hex(label: string): Kind {
  return {
    rest: true,
    read(fields) {
      const digits = plain(fields)
      return digits.ok ? hexData(digits.value, label, undefined, maxRdataOctets) : digits
    },
    toWire: (raw) => Buffer.from(raw, 'hex'),
    fromWire: (wire) => wire.rest().toString('hex'),
  }
}

export function base64(label: string): Kind {
  return {
    rest: true,
    read(fields) {
      const found = plain(fields)
      if (!found.ok) return found
      const data = Buffer.from(found.value, 'base64')
      // The decoder skips invalid characters, so encoding again shows whether any were skipped.
      if (data.length > 0 && data.toString('base64') === found.value) return found
      return refused(`The ${label} ${shown(found.value)} is not valid base64.`)
    },
    toWire: (raw) => Buffer.from(raw, 'base64'),
    fromWire: (wire) => wire.rest().toString('base64'),
  }
}
