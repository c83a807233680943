// SvcParams of SVCB and HTTPS records (RFC 9460): converts each parameter from text to wire format and back.
import { ipv4Octets, ipv4Text, ipv6Octets, ipv6Text } from '../addresses.ts'
import { quotedOctets } from '../octets.ts'
import { type Parsed, parsed, refused, shown } from '../parsed.ts'
import { wholeNumber } from './rdata-fields.ts'

type ParamKind = {
  name: string
  // Takes the octets of the text, with the escapes of presentation format already decoded.
  toWire: (text: Buffer) => Parsed<Buffer>
  // Takes wire octets, which keyNNNNN= may have set directly, so they must be checked. Null is a key without a value.
  toText: (wire: Buffer) => Parsed<string | null>
}

const comma = 0x2c
const backslash = 0x5c

// A second layer of escapes inside the value (RFC 9460, appendix A.1) lets an item contain a comma.
function listItems(text: Buffer): Parsed<Buffer[]> {
  const items: number[][] = [[]]
  for (let at = 0; at < text.length; at++) {
    const octet = text[at] ?? 0
    if (octet === comma) items.push([])
    else if (octet !== backslash) items.at(-1)?.push(octet)
    else {
      at++
      const escaped = text[at]
      if (escaped !== comma && escaped !== backslash) {
        return refused('In the list only a comma and a backslash can be escaped, as \\\\, and \\\\\\\\.')
      }
      items.at(-1)?.push(escaped)
    }
  }
  return parsed(items.map((item) => Buffer.from(item)))
}

function alpnToWire(text: Buffer): Parsed<Buffer> {
  const items = listItems(text)
  if (!items.ok) return items
  if (items.value.some((item) => item.length === 0 || item.length > 255)) {
    return refused('Each protocol in alpn must have 1-255 octets, for example alpn="h2,h3".')
  }
  return parsed(Buffer.concat(items.value.flatMap((item) => [Buffer.from([item.length]), item])))
}

function alpnToText(wire: Buffer): Parsed<string> {
  const octets: number[] = []
  let at = 0
  while (at < wire.length) {
    const length = wire[at] ?? 0
    if (length === 0 || at + 1 + length > wire.length) return refused('The alpn parameter is malformed.')
    if (at > 0) octets.push(comma)
    for (const octet of wire.subarray(at + 1, at + 1 + length)) {
      if (octet === comma || octet === backslash) octets.push(backslash)
      octets.push(octet)
    }
    at += 1 + length
  }
  if (octets.length === 0) return refused('The alpn parameter is empty. Name a protocol, for example alpn="h2".')
  return parsed(quotedOctets(Buffer.from(octets)))
}

function hint(name: string, size: number, read: (text: string) => Buffer | null, write: (octets: Buffer) => string) {
  return {
    name,
    toWire(text: Buffer): Parsed<Buffer> {
      const addresses: Buffer[] = []
      for (const item of text.toString('latin1').split(',')) {
        const octets = read(item)
        if (!octets) return refused(`The address ${shown(item)} in ${name} is not valid.`)
        addresses.push(octets)
      }
      return parsed(Buffer.concat(addresses))
    },
    toText(wire: Buffer): Parsed<string> {
      if (wire.length === 0 || wire.length % size > 0) return refused(`The ${name} parameter is malformed.`)
      const count = wire.length / size
      return parsed(
        Array.from({ length: count }, (_, at) => write(wire.subarray(at * size, (at + 1) * size))).join(','),
      )
    },
  }
}

function groupsToWire(text: Buffer): Parsed<Buffer> {
  const groups = text
    .toString('latin1')
    .split(',')
    .map((item) => wholeNumber(item, 65_535))
  if (groups.some((group) => group === null)) {
    return refused(
      'The tls-supported-groups parameter must be a list of group numbers, for example tls-supported-groups=29,23.',
    )
  }
  const wire = Buffer.alloc(groups.length * 2)
  for (const [index, group] of groups.entries()) wire.writeUInt16BE(group ?? 0, index * 2)
  return parsed(wire)
}

function groupsToText(wire: Buffer): Parsed<string> {
  const groups = numbersIn(wire)
  if (wire.length === 0 || wire.length % 2 > 0 || new Set(groups).size < groups.length) {
    return refused('The tls-supported-groups parameter must name at least one group, and each only once.')
  }
  return parsed(groups.join(','))
}

function mandatoryToWire(text: Buffer): Parsed<Buffer> {
  const keys: number[] = []
  for (const name of text.toString('latin1').split(',')) {
    const key = paramKey(name)
    if (key === null) return refused(`The key ${shown(name)} in mandatory is not supported.`)
    keys.push(key)
  }
  const wire = Buffer.alloc(keys.length * 2)
  for (const [index, key] of keys.sort((a, b) => a - b).entries()) wire.writeUInt16BE(key, index * 2)
  return parsed(wire)
}

// The two-octet numbers in a value.
export function numbersIn(wire: Buffer): number[] {
  return Array.from({ length: Math.floor(wire.length / 2) }, (_, index) => wire.readUInt16BE(index * 2))
}

function mandatoryToText(wire: Buffer): Parsed<string> {
  const keys = numbersIn(wire)
  const ascending = keys.every((key, index) => index === 0 || key > (keys[index - 1] ?? 0))
  if (keys.length === 0 || wire.length % 2 > 0 || !ascending) {
    return refused('The mandatory parameter must name at least one key, and each only once.')
  }
  if (keys.includes(0)) return refused('The mandatory parameter must not name itself.')
  return parsed(keys.map(paramName).join(','))
}

const kinds: ReadonlyMap<number, ParamKind> = new Map<number, ParamKind>([
  [0, { name: 'mandatory', toWire: mandatoryToWire, toText: mandatoryToText }],
  [1, { name: 'alpn', toWire: alpnToWire, toText: alpnToText }],
  [
    2,
    {
      name: 'no-default-alpn',
      toWire: parsed,
      toText: (wire) =>
        wire.length === 0 ? parsed(null) : refused('The no-default-alpn parameter does not take a value.'),
    },
  ],
  [
    3,
    {
      name: 'port',
      toWire(text) {
        const port = wholeNumber(text.toString('latin1'), 65_535)
        if (port === null) return refused('The port parameter must be a number from 0 to 65535, for example port=8443.')
        return parsed(Buffer.from([port >> 8, port & 255]))
      },
      toText: (wire) =>
        wire.length === 2 ? parsed(`${wire.readUInt16BE(0)}`) : refused('The port parameter is malformed.'),
    },
  ],
  [4, hint('ipv4hint', 4, ipv4Octets, ipv4Text)],
  [
    5,
    {
      name: 'ech',
      toWire(text) {
        const base64 = text.toString('latin1')
        const wire = Buffer.from(base64, 'base64')
        // The decoder skips invalid characters, so encoding again shows whether any were skipped.
        if (wire.toString('base64') !== base64) return refused('The ech parameter is not valid base64.')
        return parsed(wire)
      },
      toText: (wire) =>
        wire.length > 0 ? parsed(wire.toString('base64')) : refused('The ech parameter must be base64, and not empty.'),
    },
  ],
  [6, hint('ipv6hint', 16, ipv6Octets, ipv6Text)],
  [
    7,
    {
      name: 'dohpath',
      toWire: parsed,
      toText(wire) {
        const path = wire.toString('utf8')
        const valid = path.startsWith('/') && path.includes('{?dns}') && Buffer.from(path, 'utf8').equals(wire)
        if (!valid)
          return refused('The dohpath parameter must be a path with {?dns}, for example dohpath="/dns-query{?dns}".')
        return parsed(quotedOctets(wire))
      },
    },
  ],
  [
    8,
    {
      name: 'ohttp',
      toWire: parsed,
      toText: (wire) => (wire.length === 0 ? parsed(null) : refused('The ohttp parameter does not take a value.')),
    },
  ],
  [9, { name: 'tls-supported-groups', toWire: groupsToWire, toText: groupsToText }],
])
// Many programs don't know the names of higher keys yet.
const maxOldKey = 7

const keysByName: ReadonlyMap<string, number> = new Map([...kinds].map(([key, kind]) => [kind.name, key]))

export function paramKey(text: string): number | null {
  const name = text.slice(0, 32).toLowerCase()
  const known = keysByName.get(name)
  if (known !== undefined) return known
  const numbered = /^key(0|[1-9]\d{0,4})$/.exec(name)
  // 65535 is reserved as "invalid key".
  return numbered ? wholeNumber(numbered[1], 65_534) : null
}

export function paramName(key: number): string {
  return kinds.get(key)?.name ?? `key${key}`
}

export function paramToWire(name: string, key: number, text: Buffer): Parsed<Buffer> {
  const kind = kinds.get(key)
  // The keyNNNNN form contains wire octets, even if the key has a name (RFC 9460, section 2.1).
  return kind && kind.name === name.toLowerCase() ? kind.toWire(text) : parsed(text)
}

function genericParam(key: number, wire: Buffer): string {
  return wire.length === 0 ? `key${key}` : `key${key}=${quotedOctets(wire)}`
}

// A parameter in the form that every program can read.
export function portableParam(key: number, wire: Buffer): string {
  const text = key > maxOldKey ? null : paramToText(key, wire)
  return text?.ok ? text.value : genericParam(key, wire)
}

export function paramToText(key: number, wire: Buffer): Parsed<string> {
  const kind = kinds.get(key)
  if (!kind) return parsed(genericParam(key, wire))
  const text = kind.toText(wire)
  if (!text.ok) return text
  return parsed(text.value === null ? kind.name : `${kind.name}=${text.value}`)
}
