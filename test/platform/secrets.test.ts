import { expect, test } from 'vitest'
import { createVault, keyIdOf, placeOf } from '../../src/platform/secrets/secrets.ts'
import { sealUnbound } from '../helpers/unbound.ts'

const [key, old, other] = [1, 2, 3].map((byte) => Buffer.alloc(32, byte)) as [Buffer, Buffer, Buffer]
const place = placeOf.variable('prj_a', 'TOKEN')

test('a sealed secret opens with its key or as an old key, and with no other; changed bytes do not open', () => {
  const sealed = createVault(old).seal('hunter2', place)
  expect(createVault(key, [old]).open(sealed, place).toString()).toBe('hunter2')
  expect(() => createVault(other).open(sealed, place)).toThrow(new RegExp(`${keyIdOf(old)}.*SECRETS_KEY`))
  for (let i = 0; i < sealed.length; i++) {
    const changed = Buffer.from(sealed)
    changed[i]! ^= 1
    expect(() => createVault(old).open(changed, place)).toThrow()
  }
  for (let length = 0; length < sealed.length; length++) {
    expect(() => createVault(old).open(sealed.subarray(0, length), place)).toThrow()
  }
})

test('a sealed secret names its key, and opens in its own place alone', () => {
  const vault = createVault(key, [old])
  const sealed = vault.seal('hunter2', place)
  expect(sealed.subarray(1, 9).toString('hex')).toBe(keyIdOf(key))
  expect(keyIdOf(key)).not.toBe(keyIdOf(old))
  for (const elsewhere of [placeOf.variable('prj_b', 'TOKEN'), placeOf.variable('prj_a', 'TOKENS'), '']) {
    expect(() => vault.open(sealed, elsewhere)).toThrow(/copied/)
  }
  expect(vault.failures).toBe(3)
  // Nor by pretending to be a value of the version before, which was not bound.
  const unbound = Buffer.concat([Buffer.from([1]), sealed.subarray(9)])
  expect(() => vault.open(unbound, place)).toThrow(/SECRETS_KEY/)
})

test('a secret sealed by the version before opens with the present and with an old key', () => {
  const vault = createVault(key, [old])
  expect(vault.open(sealUnbound(key, 'one'), place).toString()).toBe('one')
  expect(vault.open(sealUnbound(old, 'two'), place).toString()).toBe('two')
  expect(() => vault.open(sealUnbound(other, 'three'), place)).toThrow(/SECRETS_KEY/)
})

test('a signature is good for its text and purpose, with the key that made it, also once that is an old one', () => {
  const signature = createVault(old).sign('usr_a new-token', 'unsubscribe')
  expect(signature).toHaveLength(32)
  expect(createVault(old).sign('usr_a new-token', 'unsubscribe')).toEqual(signature)
  expect(createVault(key, [old]).verify(signature, 'usr_a new-token', 'unsubscribe')).toBe(true)
  expect(createVault(key).verify(signature, 'usr_a new-token', 'unsubscribe')).toBe(false)
  const vault = createVault(old)
  expect(vault.verify(signature, 'usr_b new-token', 'unsubscribe')).toBe(false)
  expect(vault.verify(signature, 'usr_a new-token', 'invitation')).toBe(false)
  for (const bad of [signature.subarray(1), Buffer.alloc(0), Buffer.concat([signature, Buffer.alloc(1)])]) {
    expect(vault.verify(bad, 'usr_a new-token', 'unsubscribe')).toBe(false)
  }
  // Nobody can raise the figure of secrets that do not open by asking for links.
  expect(vault.failures).toBe(0)
})
