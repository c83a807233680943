// LOC values (RFC 1876): a place on the earth, its size, and the precision.
import type { Field } from '../fields.ts'
import { type Parsed, parsed, refused, shown } from '../parsed.ts'
import { plainTexts, wholeNumber } from './rdata-fields.ts'
import type { WireReader } from './wire-reader.ts'

const equator = 2 ** 31
const minAltitude = 10_000_000
const thousandthsPerDegree = 3_600_000
// Size, horizontal and vertical precision if omitted: 1 m, 10 km and 10 m.
const defaultPrecisions = [0x12, 0x16, 0x13]

// Thousandths of a second from the equator or the prime meridian, and how many fields they took.
function readAngle(texts: string[], signs: string, maxDegrees: number): Parsed<{ angle: number; used: number }> {
  const used = texts.findIndex((text) => signs.includes(text.toUpperCase()) && text.length === 1)
  if (used < 1 || used > 3)
    return refused(`The degrees, minutes and seconds must be followed by ${signs[0]} or ${signs[1]}.`)
  const degrees = wholeNumber(texts[0], maxDegrees)
  const minutes = used > 1 ? wholeNumber(texts[1], 59) : 0
  const seconds = used > 2 ? /^(\d{1,2})(?:\.(\d{1,3}))?$/.exec(texts[2] ?? '') : ['', '0']
  const thousandths = seconds ? Number(seconds[1]) * 1000 + Number((seconds[2] ?? '').padEnd(3, '0')) : 60_000
  if (degrees === null || minutes === null || thousandths >= 60_000) {
    return refused(`The angle ${shown(texts.slice(0, used + 1).join(' '))} is not valid.`)
  }
  const angle = degrees * thousandthsPerDegree + minutes * 60_000 + thousandths
  if (angle > maxDegrees * thousandthsPerDegree) return refused(`The angle is more than ${maxDegrees} degrees.`)
  return parsed({ angle: texts[used]?.toUpperCase() === signs[0] ? angle : -angle, used: used + 1 })
}

function readCentimetres(text: string): number | null {
  const found = /^(-?)(\d{1,8})(?:\.(\d{1,2}))?m?$/i.exec(text)
  if (!found) return null
  const [, sign, metres, fraction = ''] = found
  const centimetres = Number(metres) * 100 + Number(fraction.padEnd(2, '0'))
  return sign ? -centimetres : centimetres
}

// One digit and a power of ten in an octet; further digits are cut off.
function precisionOctet(text: string): number | null {
  const centimetres = readCentimetres(text)
  if (centimetres === null || centimetres < 0 || text.startsWith('-') || centimetres > 9_000_000_000) return null
  if (centimetres === 0) return 0
  const power = `${centimetres}`.length - 1
  return (Number(`${centimetres}`[0]) << 4) | power
}

function angleText(angle: number, signs: string): string {
  const whole = Math.abs(angle)
  const seconds = (whole % 60_000) / 1000
  const minutes = Math.floor(whole / 60_000) % 60
  return `${Math.floor(whole / thousandthsPerDegree)} ${minutes} ${seconds.toFixed(3)} ${angle < 0 ? signs[1] : signs[0]}`
}

function precisionText(octet: number): string {
  const centimetres = (octet >> 4) * 10 ** (octet & 15)
  return centimetres % 100 === 0 ? `${centimetres / 100}m` : `${(centimetres / 100).toFixed(2)}m`
}

export function locText(wire: WireReader): string {
  const version = wire.number(1)
  const precisions = [...wire.take(3)]
  const [latitude, longitude] = [wire.number(4) - equator, wire.number(4) - equator]
  const altitude = (wire.number(4) - minAltitude) / 100
  if (version !== 0 || precisions.some((octet) => octet >> 4 > 9 || (octet & 15) > 9)) wire.failed = true
  return [angleText(latitude, 'NS'), angleText(longitude, 'EW'), `${altitude.toFixed(2)}m`]
    .concat(precisions.map(precisionText))
    .join(' ')
}

// The octets on the wire. A canonical value converts back to exactly the same text.
export function locOctets(fields: Field[]): Parsed<Buffer> {
  const texts = plainTexts(fields, 5, 12)
  if (!texts.ok) return texts
  const latitude = readAngle(texts.value.slice(0, 4), 'NS', 90)
  if (!latitude.ok) return latitude
  const longitude = readAngle(texts.value.slice(latitude.value.used, latitude.value.used + 4), 'EW', 180)
  if (!longitude.ok) return longitude
  const [height = '', ...sizes] = texts.value.slice(latitude.value.used + longitude.value.used)
  const altitude = readCentimetres(height)
  if (altitude === null || altitude < -minAltitude || altitude + minAltitude > 0xffff_ffff) {
    return refused(`The altitude ${shown(height)} must be in metres, from -100000.00 to 42849672.95.`)
  }
  const wire = Buffer.alloc(16)
  for (const [index, usual] of defaultPrecisions.entries()) {
    const size = sizes[index]
    const octet = size === undefined ? usual : precisionOctet(size)
    if (octet === null)
      return refused(`The size or precision ${shown(size ?? '')} must be in metres, from 0 to 90000000.`)
    wire[1 + index] = octet
  }
  if (sizes.length > defaultPrecisions.length) return refused('There are extra fields after the vertical precision.')
  wire.writeUInt32BE(equator + latitude.value.angle, 4)
  wire.writeUInt32BE(equator + longitude.value.angle, 8)
  wire.writeUInt32BE(minAltitude + altitude, 12)
  return parsed(wire)
}
