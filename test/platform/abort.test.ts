// What is to be done at the end of a signal is done whenever the signal ends.
import { expect, test, vi } from 'vitest'
import { onAbort } from '../../src/platform/abort.ts'

test('acts once when the signal is aborted', () => {
  const ends = new AbortController()
  const act = vi.fn()
  onAbort(ends.signal, act)
  expect(act).not.toHaveBeenCalled()
  ends.abort()
  expect(act).toHaveBeenCalledTimes(1)
})

test('acts at once on a signal that is aborted already', () => {
  const act = vi.fn()
  onAbort(AbortSignal.abort(), act)
  expect(act).toHaveBeenCalledTimes(1)
})

test('does nothing after its listener is removed', () => {
  const ends = new AbortController()
  const act = vi.fn()
  onAbort(ends.signal, act)()
  ends.abort()
  expect(act).not.toHaveBeenCalled()
})
