import { describe, expect, test } from 'vitest'
import { createPasswordHasher } from '../../../src/platform/secrets/password-hash.ts'
import { newKnownBrowser, verifyKnownBrowser } from '../../../src/services/people/sign-in/known-browser.ts'
import { refuseWeakPassword } from '../../../src/services/people/sign-in/password-rules.ts'

const cheap = { kind: 'argon2id', parameters: { m: 64, t: 1, p: 1 } } as const
const cheapScrypt = { kind: 'scrypt', parameters: { ln: 10, r: 8, p: 1 } } as const

describe('a hash of a password', () => {
  test('is argon2id with the figures of OWASP, and a salt of its own', async () => {
    const hasher = createPasswordHasher()
    const hashes = [await hasher.hash('correct horse'), await hasher.hash('correct horse')]
    for (const hash of hashes) expect(hash).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$[\w+/]{22}\$[\w+/]{43}$/)
    expect(hashes[0]).not.toBe(hashes[1])
    expect(await hasher.verify('correct horse', hashes[0]!)).toBe(true)
    expect(await hasher.verify('Correct horse', hashes[0]!)).toBe(false)
    expect(hasher.isOutdated(hashes[0]!)).toBe(false)
  })

  test('tells by itself how it was made, so that others still open when the figures change', async () => {
    const now = createPasswordHasher()
    for (const use of [cheap, cheapScrypt]) {
      const before = await createPasswordHasher({ use }).hash('correct horse')
      expect(await now.verify('correct horse', before)).toBe(true)
      expect(await now.verify('wrong horse', before)).toBe(false)
      expect(now.isOutdated(before)).toBe(true)
    }
    expect(await createPasswordHasher({ use: cheapScrypt }).hash('x')).toMatch(/^\$scrypt\$ln=10,r=8,p=1\$/)
  })

  test('is the same for a password that another keyboard composes otherwise', async () => {
    const hasher = createPasswordHasher({ use: cheap })
    expect(await hasher.verify('cafe\u0301 creme', await hasher.hash('caf\u00e9 creme'))).toBe(true)
  })

  test('that is not there is never right', async () => {
    expect(await createPasswordHasher({ use: cheap }).verify('', null)).toBe(false)
  })

  test('of no known form is an error, not a wrong password', async () => {
    await expect(createPasswordHasher({ use: cheap }).verify('x', '$md5$00')).rejects.toThrow('no known form')
  })
})

test('hashing leaves the event loop free, runs few at once, and refuses what would wait too long', async () => {
  const hasher = createPasswordHasher({ atOnce: 1, waiting: 3 })
  let turns = 0
  const timer = setInterval(() => turns++, 1)
  const results = await Promise.allSettled(Array.from({ length: 6 }, () => hasher.hash('correct horse')))
  clearInterval(timer)
  expect(results.map(({ status }) => status)).toEqual([
    ...Array.from({ length: 4 }, () => 'fulfilled'),
    ...Array.from({ length: 2 }, () => 'rejected'),
  ])
  expect((results[5] as PromiseRejectedResult).reason).toMatchObject({ code: 'overloaded' })
  // Timers ran while it hashed, and the gate is open again.
  expect(turns).toBeGreaterThan(4)
  expect(await hasher.hash('correct horse')).toMatch(/^\$/)
})

test('what is urgent goes before what waits, and is taken though the queue is full', async () => {
  const hasher = createPasswordHasher({ atOnce: 1, waiting: 2, use: cheap })
  const order: string[] = []
  const note = (name: string, urgent: boolean) => hasher.verify('x', null, urgent).then(() => order.push(name))
  await Promise.all([note('running', false), note('first', false), note('second', false), note('urgent', true)])
  expect(order).toEqual(['running', 'urgent', 'first', 'second'])
})

describe('a new password', () => {
  const refused = (password: string, email = 'grace.hopper@example.com') => {
    try {
      refuseWeakPassword(password, email)
      return null
    } catch (error) {
      return (error as { members: { errors: { code: string }[] } }).members.errors[0]!.code
    }
  }

  test.each(['', 'short', 'ninechars', 'abc😀😀😀😀😀'])('is refused as too short: %j', (password) => {
    expect(refused(password)).toBe('too_short')
  })

  test.each([
    ...['password123', 'Password123!', 'P4ssw0rd!!', '1234567890', '0987654321', 'qwertyuiop', 'QWERTZ12345'],
    ...['1q2w3e4r5t', 'aaaaaaaaaa', 'abababababab', 'letmein2026!', 'Welcome2026!', 'abcdefghij', 'passwordpassword'],
    ...['grace.hopper@example.com', 'gracehopper1', 'Grace.Hopper2026', 'iloveyou12345', 'changeme123', 'berth12345'],
  ])('is refused as too common: %s', (password) => {
    expect(refused(password)).toBe('too_common')
  })

  test.each(['correct horse battery', 'tR0ub4dor&3x', 'vierzehn graue Gänse', '8f2c91d07ab3', 'ünïcödé-wörds'])(
    'is taken: %s',
    (password) => {
      expect(refused(password)).toBeNull()
    },
  )
})

test('a browser is known by what it kept for as long as the password stays, and for nobody else', () => {
  const ada = { id: 'usr_ada', passwordHash: 'hash one' }
  const kept = newKnownBrowser(ada)
  const name = verifyKnownBrowser(ada, kept)
  expect(name).toMatch(/^[\w-]{16}$/)
  expect(verifyKnownBrowser({ ...ada, passwordHash: 'hash two' }, kept)).toBeNull()
  expect(verifyKnownBrowser({ ...ada, passwordHash: null }, kept)).toBeNull()
  expect(verifyKnownBrowser({ ...ada, id: 'usr_eve' }, kept)).toBeNull()
  expect(verifyKnownBrowser(null, kept)).toBeNull()
  const [first, signature] = kept.split('.')
  for (const forged of [
    null,
    '',
    '.',
    'x',
    `x.${signature}`,
    `${first}.`,
    `${first}.AAAA`,
    `${first}.${'A'.repeat(43)}`,
  ]) {
    expect(verifyKnownBrowser(ada, forged)).toBeNull()
  }
})
