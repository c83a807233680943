// `npm run prove`: kills every process of the platform at random under writes and visitors, and exits with 1 if anything was lost.
import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import { prove } from './prove.ts'
import { holds, render } from './report.ts'

// About as often as a process needs to start and do some work.
const gapMs = 3_000

const { values } = parseArgs({
  options: { kills: { type: 'string' }, minutes: { type: 'string' }, seed: { type: 'string' } },
})
const durationMs =
  values.minutes === undefined && values.kills !== undefined
    ? Number(values.kills) * gapMs
    : Number(values.minutes ?? 3) * 60_000
const kills = values.kills === undefined ? Math.round(durationMs / gapMs) : Number(values.kills)
const seed = values.seed === undefined ? randomInt(1e9) : Number(values.seed)

const interrupted = new AbortController()
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => interrupted.abort())

const report = await prove({ kills, durationMs, seed, signal: interrupted.signal, say: (line) => console.error(line) })
console.log(`\n${render(report)}`)
process.exitCode = holds(report) ? 0 : 1
