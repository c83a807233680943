// `npm run bench -- roles`: what each role does with a second of CPU time, and what PostgreSQL adds.
import { setTimeout as sleep } from 'node:timers/promises'
import { compiledProgram } from '../edge/processes.ts'
import { median, table } from '../figures.ts'
import type { Bench, Figure } from '../group.ts'
import { type Installation, startInstallation } from './installation.ts'
import { postgresMs, processMs } from './processor.ts'
import { type Kind, kindNames, kindsOf } from './work.ts'

type Slice = { done: number; roleMs: number; databaseMs: number }

const figures: Record<string, Figure> = Object.fromEntries(
  kindNames.map((name) => [name, { what: name, against: 'a second of processor time' }]),
)

export const group = {
  about: 'What each role does with a second of processor time ([how far it scales](scale.md))',
  figures,
  run,
}

async function run(bench: Bench): Promise<void> {
  const { directory, atEnd } = bench
  const postgres = await bench.startPostgres()
  const rounds = bench.rounds(3)
  const program = await compiledProgram()
  const installation = await startInstallation(program, postgres.url('postgres'), directory)
  atEnd(() => installation.stop())
  const { kinds, close } = await kindsOf(installation)
  atEnd(async () => close())
  const rows = [['role, and what it does', 'a processor-second', 'least', 'most', 'ms of PostgreSQL for 1,000']]
  for (const kind of kinds) {
    const slices: Slice[] = []
    await drive(kind, (done) => done < bench.size(kind.warmUp, 1))
    for (let round = 0; round < rounds; round++) {
      console.error(`${kind.name}, round ${round + 1} of ${rounds} …`)
      slices.push(await measure(installation, kind, bench.size(bench.seconds(3), 0.5)))
    }
    const perSecond = slices.map(({ done, roleMs }) => (done * 1000) / roleMs)
    const database = median(slices.map(({ done, databaseMs }) => (databaseMs * 1000) / done))
    const found = [median(perSecond), Math.min(...perSecond), Math.max(...perSecond), database]
    const shown = found.map((figure) => figure.toFixed(figure < 10 ? 1 : 0))
    bench.record(kind.name, shown[0]!)
    rows.push([kind.name, ...shown])
  }
  console.log(table(rows))
}

/** CPU time instead of elapsed time, because others may use the machine. */
async function measure({ pids }: Installation, kind: Kind, seconds: number): Promise<Slice> {
  const before = { role: processMs(pids[kind.role]), database: postgresMs() }
  const endMs = performance.now() + seconds * 1000
  const done = await drive(kind, () => performance.now() < endMs)
  // Includes deferred work of a request, such as recording the last use of a token.
  await sleep(100)
  return { done, roleMs: processMs(pids[kind.role]) - before.role, databaseMs: postgresMs() - before.database }
}

/** Repeats the work, and reports how often. */
async function drive({ once, atOnce }: Kind, goesOn: (done: number) => boolean): Promise<number> {
  let done = 0
  const work = async () => {
    while (goesOn(done)) {
      await once()
      done++
    }
  }
  await Promise.all(Array.from({ length: atOnce }, work))
  return done
}
