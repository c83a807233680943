// Refuses short passwords and those that attackers try first.
import { invalidField } from '../../../platform/errors.ts'

const minLength = 10
const minDistinctCharacters = 5

/** Most leaked passwords are one of these words, alone or with digits and symbols around it. */
const common = new Set(
  `password passwort motdepasse contrasena passw passwd pass admin administrator root login welcome willkommen letmein
  iloveyou ilove sunshine princess football baseball basketball superman batman dragon monkey master shadow michael
  charlie jordan liverpool chelsea arsenal computer internet whatever trustno starwars pokemon killer hello secret
  changeme default test testtest guest user qwerty qwertyuiop qwertz azerty asdf asdfgh asdfghjkl zxcvbn zxcvbnm qazwsx
  qwe qweasd qweasdzxc abc abcd abcdef abcdefgh abcdefghij q w e r t y a s d berth`.split(/\s+/),
)

const keys = ['abcdefghijklmnopqrstuvwxyz', '01234567890123456789', '1234567890qwertyuiopasdfghjklzxcvbnm']
const rows = [
  ...keys,
  ...keys.map((row) => [...row].reverse().join('')),
  '1q2w3e4r5t6z7u8i9o0p',
  '1q2w3e4r5t6y7u8i9o0p',
]

function isCommon(password: string, email: string): boolean {
  const lower = password.normalize('NFKC').toLowerCase()
  // Undoes common substitutions: p4ssw0rd, adm1n.
  const spelt = lower.replace(/[0134578@$]/g, (sign) => 'oieastboas'['0134578@$'.indexOf(sign)]!)
  const words = [lower, spelt].map((text) => text.replace(/[^a-z]/g, ''))
  const half = lower.slice(0, lower.length / 2)
  const [local = '', domain = ''] = email.split('@')
  return (
    new Set(lower).size < minDistinctCharacters ||
    words.some((word) => common.has(word) || (half + half === lower && common.has(half))) ||
    rows.some((row) => row.includes(lower)) ||
    [email, local, domain].includes(lower) ||
    (local.length > 3 && lower.replace(/[^a-z]/g, '') === local.replace(/[^a-z]/g, ''))
  )
}

/** Throws if the password is too short or too common. */
export function refuseWeakPassword(password: string, email: string): void {
  if ([...password].length < minLength) {
    throw invalidField('#/password', 'too_short', `must have at least ${minLength} characters`)
  }
  if (isCommon(password, email)) {
    throw invalidField('#/password', 'too_common', 'is too common; use several words or a password manager')
  }
}
