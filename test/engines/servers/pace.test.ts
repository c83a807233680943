import { Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Pace } from '../../../src/engines/servers/instance/pace.ts'

/** Reads until the pace pauses; returns how often. */
function readUntilPaused(socket: Socket, pace: Pace, bytes: number): number {
  let reads = 0
  for (; !socket.isPaused() && reads < 10_000; reads++) pace.spend(bytes)
  return reads
}

test('a peer has 256 KiB or 64 reads in a turn, and goes on in a later one', async () => {
  for (const [bytes, reads] of [
    [1, 64],
    [16 << 10, 16],
    [256 << 10, 1],
  ] as const) {
    const socket = new Socket()
    const pace = new Pace(socket)
    for (let i = 0; i < 3; i++) {
      expect(readUntilPaused(socket, pace, bytes)).toBeLessThanOrEqual(reads)
      await turn()
      await turn()
      expect(socket.isPaused()).toBe(false)
    }
  }
})

test('a peer goes on when its turn has come and the other side is ready, whichever is first', async () => {
  const socket = new Socket()
  const pace = new Pace(socket)
  readUntilPaused(socket, pace, 1)
  // The other side takes everything at once.
  pace.pause()
  pace.resume()
  expect(socket.isPaused()).toBe(true)
  await turn()
  await turn()
  expect(socket.isPaused()).toBe(false)
  readUntilPaused(socket, pace, 1)
  pace.pause()
  await turn()
  await turn()
  expect(socket.isPaused()).toBe(true)
  pace.resume()
  expect(socket.isPaused()).toBe(false)
})
