import { expect, test } from 'vitest'
import { newId, randomLabel } from '../../src/platform/ids.ts'

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
