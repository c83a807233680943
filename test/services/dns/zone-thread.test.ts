// The thread for large zones keeps the memory that it once needed, so it ends when nobody has had work for it for a while.
import { EventEmitter } from 'node:events'
import type { Worker } from 'node:worker_threads'
import { pino } from 'pino'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { ToThread, ZoneJob } from '../../../src/services/dns/thread/messages.ts'
import { createZoneThread } from '../../../src/services/dns/thread/zone-thread.ts'

class FakeWorker extends EventEmitter {
  isEnded = false
  readonly ids: number[] = []

  postMessage(message: ToThread): void {
    if ('id' in message) this.ids.push(message.id)
  }

  /** Answers the oldest work. */
  answer(): void {
    this.emit('message', { id: this.ids.shift(), result: {} })
  }

  async terminate(): Promise<void> {
    this.isEnded = true
    this.emit('exit')
  }

  unref(): void {}
}

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
afterEach(() => void vi.useRealTimers())

function startThread() {
  const workers: FakeWorker[] = []
  const thread = createZoneThread('', pino({ level: 'silent' }), () => {
    workers.push(new FakeWorker())
    return workers.at(-1) as unknown as Worker
  })
  const { signal } = new AbortController()
  const run = (account: string) => thread.run(account, { kind: 'export' } as ZoneJob & { kind: 'export' }, signal)
  return { workers, run, ended: () => workers.map(({ isEnded }) => isEnded) }
}

test('it ends a minute after its last work, and another one starts for the next', async () => {
  const { workers, run, ended } = startThread()
  const first = run('acc_1')
  workers[0]!.answer()
  await first
  vi.advanceTimersByTime(50_000)
  const second = run('acc_1')
  vi.advanceTimersByTime(120_000)
  expect(ended()).toEqual([false])
  workers[0]!.answer()
  await second
  vi.advanceTimersByTime(60_000)
  expect(ended()).toEqual([true])
  const third = run('acc_1')
  expect(ended()).toEqual([true, false])
  workers[1]!.answer()
  await third
})

test('it does not end while it works for somebody', async () => {
  const { workers, run, ended } = startThread()
  const [one, other] = [run('acc_1'), run('acc_2')]
  workers[0]!.answer()
  await one
  vi.advanceTimersByTime(600_000)
  expect(ended()).toEqual([false])
  workers[0]!.answer()
  await other
})
