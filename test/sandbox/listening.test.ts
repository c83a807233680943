import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { afterEach, expect, test, vi } from 'vitest'
import { hear } from '../../src/sandbox/processes/listening.ts'

afterEach(() => void vi.useRealTimers())

test.each([
  { worksMs: 5, restsMs: 100 },
  { worksMs: 60, restsMs: 1_200 },
  { worksMs: 150, restsMs: 2_000 },
])('a stream whose listener works for $worksMs ms rests for $restsMs ms', async ({ worksMs, restsMs }) => {
  vi.useFakeTimers()
  const stream = new PassThrough()
  hear(stream, () => void vi.advanceTimersByTime(worksMs))
  const paused = once(stream, 'pause')
  stream.write('a')
  await paused
  vi.advanceTimersByTime(restsMs - 1)
  expect(stream.isPaused()).toBe(true)
  vi.advanceTimersByTime(1)
  expect(stream.isPaused()).toBe(false)
})

test('a stream whose listener is quick does not rest', async () => {
  vi.useFakeTimers()
  const stream = new PassThrough()
  const pause = vi.spyOn(stream, 'pause')
  hear(stream, () => void vi.advanceTimersByTime(1))
  for (let i = 0; i < 4; i++) stream.write('a')
  stream.end()
  await once(stream, 'end')
  expect(pause).not.toHaveBeenCalled()
})
