import { expect, test } from 'vitest'
import { newId, randomLabel } from '../../src/platform/ids.ts'
import { createVault } from '../../src/platform/secrets.ts'

test('an id is its prefix and 24 base32 characters', () => {
  expect(newId('prj')).toMatch(/^prj_[0-9a-hjkmnp-tv-z]{24}$/)
})

test('ids sort by creation, also within a millisecond, and none comes twice', () => {
  const ids = Array.from({ length: 20_000 }, () => newId('evt'))
  expect([...ids].sort()).toEqual(ids)
  expect(new Set(ids).size).toBe(ids.length)
})

test('a label is letters and digits', () => {
  expect(randomLabel(9)).toMatch(/^[0-9a-z]{9}$/)
})

test('a sealed secret opens with its key or as an old key, and with no other; changed bytes do not open', () => {
  const [key, old, other] = [1, 2, 3].map((byte) => Buffer.alloc(32, byte)) as [Buffer, Buffer, Buffer]
  const sealed = createVault(old).seal('hunter2')
  expect(createVault(key, [old]).open(sealed).toString()).toBe('hunter2')
  expect(() => createVault(other).open(sealed)).toThrow(/SECRETS_KEY/)
  sealed[sealed.length - 1]! ^= 1
  expect(() => createVault(old).open(sealed)).toThrow()
})
