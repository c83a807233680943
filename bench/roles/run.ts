// `npm run bench -- roles`: what each role does with one second of processor time, and what PostgreSQL adds to it.
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { compile } from '../edge/processes.ts'
import { median, table } from '../figures.ts'
import { inScratch } from '../scratch.ts'
import { type Installation, startInstallation } from './installation.ts'
import { postgresMs, processMs } from './processor.ts'
import { type Kind, kindsOf } from './work.ts'

type Slice = { done: number; roleMs: number; databaseMs: number }

export async function run(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: { rounds: { type: 'string', default: '3' }, seconds: { type: 'string', default: '3' } },
  })
  await inScratch(async ({ directory, postgres, atEnd }) => {
    const program = await compile(join(directory, 'compiled'))
    const installation = await startInstallation(program, postgres.url('postgres'), directory)
    atEnd(() => installation.stop())
    const { kinds, close } = await kindsOf(installation)
    atEnd(async () => close())
    const rows = [['role, and what it does', 'a processor-second', 'least', 'most', 'ms of PostgreSQL for 1,000']]
    for (const kind of kinds) {
      const slices: Slice[] = []
      await drive(kind, (done) => done < kind.warmUp)
      for (let round = 0; round < Number(values.rounds); round++) {
        console.error(`${kind.role}: ${kind.name}, round ${round + 1} of ${values.rounds} …`)
        slices.push(await measure(installation, kind, Number(values.seconds)))
      }
      const perSecond = slices.map(({ done, roleMs }) => (done * 1000) / roleMs)
      const database = median(slices.map(({ done, databaseMs }) => (databaseMs * 1000) / done))
      const figures = [median(perSecond), Math.min(...perSecond), Math.max(...perSecond), database]
      rows.push([`${kind.role}: ${kind.name}`, ...figures.map((figure) => figure.toFixed(figure < 10 ? 1 : 0))])
    }
    console.log(table(rows))
  })
}

/** Processor time and not time: others may use the machine meanwhile. */
async function measure({ pids }: Installation, kind: Kind, seconds: number): Promise<Slice> {
  const before = { role: processMs(pids[kind.role]), database: postgresMs() }
  const endMs = performance.now() + seconds * 1000
  const done = await drive(kind, () => performance.now() < endMs)
  // What a request leaves to be done afterwards, such as the time a token was used, belongs to it.
  await sleep(100)
  return { done, roleMs: processMs(pids[kind.role]) - before.role, databaseMs: postgresMs() - before.database }
}

/** Does it again and again, and tells how often. */
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
