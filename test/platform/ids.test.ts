import { expect, test, vi } from 'vitest'
import { newId, randomLabel, timeOf } from '../../src/platform/ids.ts'

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

test('ids grow when the clock is set back a little, and tell the right time again after it was wrong for a while', () => {
  const realMs = Date.now()
  const at = (ms: number) => {
    vi.setSystemTime(ms)
    return newId('evt')
  }
  vi.useFakeTimers({ toFake: ['Date'] })
  try {
    const first = at(realMs)
    const second = at(realMs - 1_000)
    expect(second > first).toBe(true)
    at(realMs + 7 * 86_400_000)
    expect(timeOf(at(realMs)).getTime()).toBe(realMs)
  } finally {
    vi.useRealTimers()
  }
})
