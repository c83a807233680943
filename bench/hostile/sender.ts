// The hostile side, a separate process: sends a shape repeatedly, and reports how often and how each message ended.
import { setTimeout as sleep } from 'node:timers/promises'
import { answerParent } from '../children.ts'
import { surfaces } from './shapes.ts'
import type { Target } from './surface.ts'

/** Sends messages one after the other or at an interval, with some in parallel. Without a shape, the plain form. */
export type Order = { surface: string; shape: string | null; target: Target; seconds: number; everyMs: number | null }

/** `ends`: counts messages by how they ended. */
export type Result = { messages: number; ms: number; ends: Record<string, number> }

const maxAtOnce = 4

async function send({ surface, shape, target, seconds, everyMs }: Order): Promise<Result> {
  const { plain, shapes } = surfaces[surface]!
  const once = shape === null ? plain : shapes[shape]!
  const ends: Record<string, number> = {}
  let messages = 0
  const startedMs = performance.now()
  const endMs = startedMs + seconds * 1000
  const lane = async () => {
    do {
      const begunMs = performance.now()
      const end = await once(target)
      ends[end] = (ends[end] ?? 0) + 1
      messages++
      const nextMs = everyMs === null ? 0 : Math.min(endMs, begunMs + everyMs * maxAtOnce)
      if (nextMs > performance.now()) await sleep(Math.ceil(nextMs - performance.now()))
    } while (performance.now() < endMs)
  }
  await Promise.all(Array.from({ length: everyMs === null ? 1 : maxAtOnce }, lane))
  return { messages, ms: performance.now() - startedMs, ends }
}

answerParent(send, async () => {})
