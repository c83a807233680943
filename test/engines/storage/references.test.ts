import { hash } from 'node:crypto'
import { expect, test } from 'vitest'
import { createReferences } from '../../../src/engines/storage/references.ts'

const named = (index: number) => hash('sha256', `blob ${index}`)

test('every hash that was added is known, and hardly another one', () => {
  const references = createReferences()
  for (let i = 0; i < 100_000; i++) references.add(named(i))
  let [known, others] = [0, 0]
  for (let i = 0; i < 100_000; i++) {
    if (references.has(named(i))) known++
    if (references.has(named(-1 - i))) others++
  }
  expect(known).toBe(100_000)
  expect(others).toBeLessThan(5)
})
