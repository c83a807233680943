// What a build prints beyond the limit of its log.
import { StringDecoder } from 'node:string_decoder'
import { afterEach, expect, test, vi } from 'vitest'
import { createBuildLog } from '../../../src/engines/builder/explain/log.ts'
import type { Database } from '../../../src/platform/database/database.ts'

afterEach(() => void vi.restoreAllMocks())

const blank = Buffer.alloc(64 << 10, '\n')

test('of what comes after the limit no line is looked at, and nothing decoded', async () => {
  const log = createBuildLog({} as Database, 'dpl_x', { secrets: [], hostDirectory: '/work' })
  const perLine = vi.spyOn(String.prototype, 'replace')
  const decoded = vi.spyOn(StringDecoder.prototype, 'write')
  log.output('stdout', Buffer.concat([Buffer.alloc(11 << 20, 'x'), blank]))
  expect(perLine.mock.calls.length).toBeLessThan(10)
  expect(decoded).toHaveBeenCalledTimes(1)
  for (const stream of ['stdout', 'stderr'] as const) log.output(stream, blank)
  expect(perLine.mock.calls.length).toBeLessThan(10)
  expect(decoded).toHaveBeenCalledTimes(1)
  vi.restoreAllMocks()
  await log.close()
})
