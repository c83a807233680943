import { expect, test } from 'vitest'
import { createAttemptLimits, createCredentialLimits } from '../../../src/engines/edge/guards/attempt-limits.ts'

const from = (n: number) => `2001:db8:${(n >> 8).toString(16)}:${(n & 0xff).toString(16)}::1`

test('strangers at many addresses lock nobody out who has not guessed yet, and each of them guesses less', () => {
  const attempts = createAttemptLimits()
  for (let n = 0; n < 30; n++)
    for (let guess = 0; guess < 10; guess++) expect(attempts.count('prj_a', from(n))).toBeNull()
  expect(attempts.count('prj_a', from(0))).toBeGreaterThan(0)
  for (let n = 100; n < 200; n++) {
    expect([attempts.count('prj_a', from(n)), attempts.count('prj_a', from(n))]).toEqual([null, null])
    expect(attempts.count('prj_a', from(n))).toBeGreaterThan(0)
  }
  // Whoever knows the password gets in.
  expect(attempts.count('prj_a', '192.0.2.1')).toBeNull()
  attempts.refund('prj_a', '192.0.2.1')
  expect(attempts.count('prj_a', '192.0.2.1')).toBeNull()
  // In a network of 64 bits its owner chooses the rest.
  expect(attempts.count('prj_a', '2001:db8:0:0:ffff::9')).toBeGreaterThan(0)
  expect(attempts.count('prj_b', from(0))).toBeNull()
})

test('credentials that were right at one address are no better than others at another', () => {
  const checkAttempt = createCredentialLimits()
  const show = (address: string, credentials: string, isRight = false) =>
    checkAttempt({ projectId: 'prj_a', address, credentials, isRight })
  expect(show('192.0.2.1', 'ann:one', true)).toBe(true)
  for (let guess = 0; guess < 30; guess++) expect(show('192.0.2.2', `ann:${guess}`)).toBe(false)
  expect(show('192.0.2.2', 'ann:one', true)).toBeGreaterThan(0)
  expect(show('192.0.2.1', 'ann:one', true)).toBe(true)
  // What was right and is not any more.
  expect(show('192.0.2.1', 'ann:one')).toBe(false)
  expect(show('192.0.2.2', 'ann:1')).toBe(false)
  expect(show('192.0.2.2', 'ann:1', true)).toBeGreaterThan(0)
})
