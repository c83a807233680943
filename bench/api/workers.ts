// Two worker processes of the API against one process, each on a database of its own. wrk asks, because it takes a
// tenth of the processor time of a generator in JavaScript: on two cores that leaves the rest to what is measured.
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { freePort, startChild, withoutLimits } from '../children.ts'
import { findProgram } from '../edge/peers.ts'
import { load } from '../edge/visits.ts'
import { median, table, verdict } from '../figures.ts'
import { inScratch } from '../scratch.ts'
import { seededId } from './endpoints.ts'
import { makeRepository, seed } from './seed.ts'

const wanted = 1.5
const size = 1_000
const slice = { connections: 32, seconds: 3 }
const counts = [0, 2]

// The first needs nothing but the API itself; the second also a query, so that PostgreSQL wants its part of the cores.
const paths = ['/api/regions', `/api/deployments/${seededId('dpl', 1)}`]

export async function measureWorkers(rounds: number): Promise<void> {
  const wrk = findProgram('wrk')
  if (wrk === null) return void console.log('skipped workers: wrk is not installed (Debian: apt install wrk)')
  await inScratch(async ({ directory, postgres, atEnd }) => {
    await makeRepository(join(directory, 'repos'))
    const token = await seed(
      postgres,
      size,
      counts.map((count) => `workers_${count}`),
    )
    const urls: string[] = []
    for (const count of counts) {
      const port = await freePort()
      const environment = {
        ...withoutLimits,
        DATABASE_URL: postgres.url(`workers_${count}`),
        DATA_DIR: directory,
        PORT: String(port),
        METRICS_PORT: '0',
        WORKERS: String(count),
        SECRETS_KEY: randomBytes(32).toString('base64'),
      }
      const child = await startChild(join(import.meta.dirname, 'server.ts'), environment, join(directory, 'ours.log'))
      atEnd(() => child.stop())
      urls.push(`http://127.0.0.1:${port}`)
    }
    const ask = (url: string) => load(wrk, url, `Authorization: Bearer ${token}`, slice)
    const rows = [['requests/s', 'one process', '2 workers', 'ratio']]
    const ratios: number[] = []
    for (const path of paths) {
      console.error(`${path}, one process and two workers …`)
      const found: number[][] = counts.map(() => [])
      for (const url of urls) await ask(url + path)
      for (let round = 0; round < rounds; round++) {
        for (const index of round % 2 === 0 ? [0, 1] : [1, 0]) found[index]!.push(await ask(urls[index]! + path))
      }
      const ratio = median(found[1]!.map((value, round) => value / found[0]![round]!))
      ratios.push(ratio)
      rows.push([`GET ${path}`, ...found.map((values) => median(values).toFixed(0)), ratio.toFixed(2)])
    }
    console.log(`\n${table(rows)}\n`)
    const bound = `requests/s of 2 workers at least ${wanted} of one process, without the database`
    console.log(verdict(ratios[0]! >= wanted, bound, ratios[0]!.toFixed(2)))
  })
}
