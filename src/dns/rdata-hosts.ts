// Rdata that points at a host: CNAME, NS, ALIAS, MX and SRV.
import { parsed, refused } from './parsed.ts'
import { numbersOf, plainTexts, type RdataReader } from './rdata-fields.ts'

export const parseHost: RdataReader = (fields, resolve) => {
  const texts = plainTexts(fields, 1, 1)
  if (!texts.ok) return texts
  const target = resolve(texts.value[0] ?? '')
  if (target.ok && target.value === '.') return refused('The target is the root, which is no host.')
  return target
}

export const parseMx: RdataReader = (fields, resolve) => {
  const texts = plainTexts(fields, 2, 2)
  if (!texts.ok) return texts
  const numbers = numbersOf(texts.value, [{ called: 'preference', highest: 65_535 }])
  if (!numbers.ok) return numbers
  const [preference = 0] = numbers.value
  const target = resolve(texts.value[1] ?? '')
  if (!target.ok) return target
  if (target.value === '.' && preference !== 0) {
    return refused('A domain that takes no mail has the value 0 . with preference 0 (RFC 7505).')
  }
  return parsed(`${preference} ${target.value}`)
}

export const parseSrv: RdataReader = (fields, resolve) => {
  const texts = plainTexts(fields, 4, 4)
  if (!texts.ok) return texts
  const numbers = numbersOf(texts.value, [
    { called: 'priority', highest: 65_535 },
    { called: 'weight', highest: 65_535 },
    { called: 'port', highest: 65_535 },
  ])
  if (!numbers.ok) return numbers
  const target = resolve(texts.value[3] ?? '')
  return target.ok ? parsed(`${numbers.value.join(' ')} ${target.value}`) : target
}
