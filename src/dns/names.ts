// Domain names as text: owner names relative to their zone, and the absolute names that records point to.
import { domainToASCII } from 'node:url'
import { type Parsed, parsed, refused, shown, unreadableText } from './parsed.ts'

const plainLabel = /^(?:[a-z0-9_/-]|\\\d{3})+$/
const nonAscii = /[^\p{ASCII}]/u
// The dots that IDNA treats as label separators, as typed on Japanese and Chinese keyboards.
const separators = /[.\u3002\uff0e\uff61]/
const maxLabelOctets = 63
// 255 octets on the wire are 253 characters of text without the trailing dot.
const maxNameCharacters = 253
// The longest name with every character written as \DDD. Longer input is refused before any other work.
const maxInputCharacters = 4 * 255

// Normalizes escapes. Characters of host names are written plainly, all others as \DDD, including a dot within a label:
// in a canonical name, every dot ends a label.
function withPlainEscapes(text: string): Parsed<string> {
  if (!text.includes('\\')) return parsed(text)
  let isRight = true
  const plain = text.replace(/\\(\d{3}|\D|)/gu, (_, escaped: string) => {
    const code = escaped.length === 3 ? Number(escaped) : escaped.charCodeAt(0)
    if (!(code <= (escaped.length === 3 ? 0xff : 0x7f))) isRight = false
    const octet = String.fromCharCode(code)
    return /[A-Za-z0-9_/*-]/.test(octet) ? octet : `\\${code.toString().padStart(3, '0')}`
  })
  if (isRight) return parsed(plain)
  return refused(
    `The name ${shown(text)} has a backslash that is not followed by a character or an octet, as in \\. or \\046.`,
  )
}

// The length of a canonical name or label, counting each escape as one octet.
function octetsIn(name: string): number {
  return name.includes('\\') ? name.replace(/\\\d{3}/g, '?').length : name.length
}

function asciiLabel(label: string): string | null {
  if (!nonAscii.test(label)) return plainLabel.test(label) ? label : null
  // The URL rules behind domainToASCII would decode percent signs and the like.
  if (!/^(?:[a-z0-9-]|[^\p{ASCII}])+$/u.test(label)) return null
  // The second label keeps a label of digits from being parsed as an IPv4 address.
  const converted = domainToASCII(`${label}.a`)
  const ascii = converted.endsWith('.a') ? converted.slice(0, -2) : ''
  return /^[a-z0-9-]+$/.test(ascii) ? ascii : null
}

// Lower case, A-labels, no trailing dot; the root is ".".
export function canonicalName(input: string): Parsed<string> {
  if (input === '.') return parsed('.')
  if (input === '') return refused('The name is empty. Use @ for the domain itself.')
  if (input.length > maxInputCharacters) {
    return refused(`The name ${shown(input)} is longer than 255 octets.`)
  }
  const unreadable = unreadableText(input)
  if (unreadable) return refused(`The name ${shown(input)} ${unreadable}.`)
  const plain = withPlainEscapes(input)
  if (!plain.ok) return plain

  const labels = plain.value.toLowerCase().split(separators)
  if (labels.at(-1) === '') labels.pop()
  const ascii: string[] = []
  for (const [index, label] of labels.entries()) {
    if (label === '')
      return refused(
        `The name ${shown(input)} has an empty label: it contains two dots in a row, or starts with a dot.`,
      )
    if (label.includes('*')) {
      if (label !== '*' || index > 0) {
        return refused(
          `The name ${shown(input)} has a * in the wrong place: it must be the whole first label, as in *.example.com.`,
        )
      }
      ascii.push(label)
      continue
    }
    const converted = asciiLabel(label)
    if (converted === null) {
      return refused(
        `The label ${shown(label)} of ${shown(input)} is not valid: labels are letters, digits, hyphens and underscores.`,
      )
    }
    if (octetsIn(converted) > maxLabelOctets) {
      return refused(`The label ${shown(label)} has ${octetsIn(converted)} octets; a label has at most 63.`)
    }
    ascii.push(converted)
  }
  const name = ascii.join('.')
  if (octetsIn(name) > maxNameCharacters) return refused(`The name ${shown(input)} is longer than 255 octets.`)
  return parsed(name)
}

function zoneName(zone: string): string {
  return (zone.endsWith('.') ? zone.slice(0, -1) : zone).toLowerCase()
}

// Null if the name is neither the zone nor below it. Both are canonical and absolute.
export function nameWithinZone(name: string, zone: string): string | null {
  const apex = zoneName(zone)
  if (name === apex) return '@'
  return name.endsWith(`.${apex}`) ? name.slice(0, -apex.length - 1) : null
}

export function absoluteName(relative: string, zone: string): string {
  return relative === '@' ? zoneName(zone) : `${relative}.${zoneName(zone)}`
}

export function relativeName(input: string, zone: string): Parsed<string> {
  if (typeof input !== 'string') return refused('A name must be text. Use @ for the domain itself.')
  if (input === '@') return parsed('@')
  const name = canonicalName(input)
  if (!name.ok) return name
  const within = nameWithinZone(name.value, zone)
  if (within !== null) return parsed(within)
  if (input.endsWith('.')) {
    return refused(`The name ${shown(input)} ends in a dot but not in ${zoneName(zone)}, so it is outside the domain.`)
  }
  if (octetsIn(absoluteName(name.value, zone)) > maxNameCharacters) {
    return refused(`The name ${shown(input)} is longer than 255 octets with ${zoneName(zone)} appended.`)
  }
  return name
}

export function hostTarget(input: string, zone: string): Parsed<string> {
  if (input === '@') return parsed(zoneName(zone))
  const name = canonicalName(input)
  if (!name.ok || name.value === '.' || name.value === zoneName(zone)) return name
  if (name.value.startsWith('*'))
    return refused(`The target ${shown(input)} is a wildcard; records cannot point at one.`)
  const labels = name.value.split('.')
  // "mail" could mean mail.example.com or a top-level name, so it is refused rather than guessed.
  if (labels.length === 1) {
    return refused(
      `The target ${shown(input)} is not a full host name. Write it out, for example ${name.value}.${zoneName(zone)}.`,
    )
  }
  if (/^\d+$/.test(labels.at(-1) ?? '')) {
    return refused(`The target ${shown(input)} is not a host name. Addresses belong in A and AAAA records.`)
  }
  return name
}
