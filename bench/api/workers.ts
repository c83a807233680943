// Two worker processes of the API compared with one process, each on its own database. Uses wrk, which takes a tenth
// of the CPU time of a JavaScript generator and leaves the rest of two cores to the servers.
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import type { EmbeddedPostgres } from '../../src/embedded-postgres/index.ts'
import { freePort, startPlatform, withoutLimits } from '../children.ts'
import { load } from '../edge/visits.ts'
import { median, medianRatio, table, verdict } from '../figures.ts'
import type { Bench, Figure } from '../group.ts'
import { findProgram } from '../programs.ts'
import { seededId } from './endpoints.ts'
import { seed } from './seed.ts'

const minRatio = 1.5
const size = 1_000
const counts = [0, 2]

// The first needs only the API; the second also a query, so that PostgreSQL competes for the cores.
const paths = { regions: '/api/regions', deployment: `/api/deployments/${seededId('dpl', 1)}` }

export const workerFigures: Record<keyof typeof paths, Figure> = {
  regions: { what: '`GET /regions`, two worker processes', against: 'one process', needs: ['wrk'] },
  deployment: { what: '`GET /deployments/{id}`, two worker processes', against: 'one process', needs: ['wrk'] },
}

export async function measureWorkers(bench: Bench, postgres: EmbeddedPostgres): Promise<void> {
  const wrk = findProgram('wrk')
  if (wrk === null) return
  const { directory, atEnd } = bench
  const rounds = bench.rounds(5)
  const slice = { connections: 32, seconds: bench.seconds(3) }
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
    const child = await startPlatform(['api'], environment, join(directory, 'ours.log'))
    atEnd(() => child.stop())
    urls.push(`http://127.0.0.1:${port}`)
  }
  const ask = (url: string) => load(wrk, url, `Authorization: Bearer ${token}`, slice)
  const rows = [['requests/s', 'one process', '2 workers', 'ratio']]
  const ratios: number[] = []
  for (const [name, path] of Object.entries(paths)) {
    console.error(`${path}, one process and two workers …`)
    const found: number[][] = counts.map(() => [])
    if (!bench.smoke) for (const url of urls) await ask(url + path)
    for (let round = 0; round < rounds; round++) {
      for (const index of round % 2 === 0 ? [0, 1] : [1, 0]) found[index]!.push(await ask(urls[index]! + path))
    }
    const ratio = medianRatio(found[1]!, found[0]!)
    ratios.push(ratio)
    bench.record(name, ratio)
    rows.push([`GET ${path}`, ...found.map((values) => median(values).toFixed(0)), ratio.toFixed(2)])
  }
  console.log(`\n${table(rows)}\n`)
  const bound = `requests/s of 2 workers at least ${minRatio} of one process, without the database`
  console.log(verdict(ratios[0]! >= minRatio, bound, ratios[0]!.toFixed(2)))
}
