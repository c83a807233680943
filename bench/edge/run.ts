// `npm run bench -- edge`: a large and a small file from the edge, from Caddy and from nginx in turns; then the edge with many
// deployments. `--only large|throughput|scale`.

import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { EmbeddedPostgres } from '../../src/embedded-postgres/index.ts'
import { median, table, verdict } from '../figures.ts'
import { inScratch } from '../scratch.ts'
import { measureLarge } from './large.ts'
import { findProgram, type Peer, startCaddy, startNginx } from './peers.ts'
import { compile, type EdgeProcess, startEdge } from './processes.ts'
import { measureScale, reportScale } from './scale.ts'
import { deploymentHost, fileContent, filePath, seed } from './seed.ts'
import { load } from './visits.ts'

const wanted = { caddy: 1, nginx: 0.5, workers: 0.6 }
// Of the edge and of nginx.
const workers = 2
const connections = 64
const sizes = { few: 10, many: 10_000 }

/** An edge on a database of that many deployments, as one process or with worker processes. */
export type Start = (size: number, workers?: number) => Promise<EdgeProcess>

export async function run(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      only: { type: 'string', default: '' },
      rounds: { type: 'string', default: '5' },
      seconds: { type: 'string', default: '3' },
    },
  })
  await inScratch(async ({ directory, postgres }) => {
    const start = await prepare(postgres, directory)
    if (values.only === '' || values.only === 'large') {
      const places = { dataDir: join(directory, `edge-${sizes.few}`), directory }
      await measureLarge(() => start(sizes.few), places, Number(values.rounds), Number(values.seconds))
    }
    if (values.only === '' || values.only === 'throughput') {
      const figures = await measureThroughput(start, directory, Number(values.rounds), Number(values.seconds))
      if (figures) reportThroughput(figures)
    }
    if (values.only === '' || values.only === 'scale') reportScale(await measureScale(start, sizes), sizes)
  })
}

/** Fills a database and a data directory for each size; the edges themselves are started when they are wanted. */
async function prepare(postgres: EmbeddedPostgres, directory: string): Promise<Start> {
  const urls = new Map<number, string>()
  const dataDirOf = (size: number) => join(directory, `edge-${size}`)
  for (const size of Object.values(sizes)) {
    await mkdir(dataDirOf(size))
    urls.set(size, await seed(postgres, `edge_${size}`, dataDirOf(size), size))
  }
  const program = await compile(join(directory, 'compiled'))
  return (size, workers = 0) => {
    const environment = { DATABASE_URL: urls.get(size)!, DATA_DIR: dataDirOf(size), WORKERS: String(workers) }
    return startEdge(program, environment, join(directory, `edge-${size}-${workers}.log`))
  }
}

type Figures = { name: string; perSecond: number[] }[]

async function measureThroughput(start: Start, directory: string, rounds: number, seconds: number) {
  const wrk = findProgram('wrk')
  if (wrk === null) return void console.log('skipped requests/s: wrk is not installed (Debian: apt install wrk)')
  const served = join(directory, 'served')
  await mkdir(served)
  await chmod(served, 0o755)
  await writeFile(join(served, filePath), fileContent(1), { mode: 0o644 })
  const servers: Peer[] = []
  try {
    servers.push({ name: 'edge', ...(await start(sizes.few)) })
    servers.push({ name: `edge, ${workers} workers`, ...(await start(sizes.few, workers)) })
    for (const [name, startPeer] of Object.entries({ caddy: startCaddy, nginx: startNginx })) {
      const peer = await startPeer(directory, served, workers)
      if (peer) servers.push(peer)
      else console.log(`skipped ${name}: it is not installed (Debian: apt install ${name})`)
    }
    const slice = (server: Peer, seconds: number) =>
      load(wrk, `http://127.0.0.1:${server.port}${filePath}`, `Host: ${deploymentHost(1)}`, { connections, seconds })
    const figures: Figures = servers.map(({ name }) => ({ name, perSecond: [] }))
    for (const server of servers) {
      await expectFile(server)
      await slice(server, 2)
    }
    for (let round = 0; round < rounds; round++) {
      console.error(`requests/s, round ${round + 1} of ${rounds} …`)
      // There and back again, so that a machine that gets slower or faster favours nobody.
      for (const index of round % 2 === 0 ? servers.keys() : [...servers.keys()].reverse()) {
        figures[index]!.perSecond.push(await slice(servers[index]!, seconds))
      }
    }
    return figures
  } finally {
    for (const server of servers) await server.stop()
  }
}

/** All serve the same bytes, or the comparison would mean nothing. */
async function expectFile({ name, port }: Peer): Promise<void> {
  const text = await new Promise<string>((resolve, reject) => {
    const sent = request({ port, path: filePath, headers: { host: deploymentHost(1) } }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk) => {
        text += chunk
      })
      response.on('end', () => resolve(response.statusCode === 200 ? text : `status ${response.statusCode}`))
    })
    sent.on('error', reject).end()
  })
  if (text !== fileContent(1)) throw new Error(`${name} does not serve the file: ${text.slice(0, 200)}`)
}

function reportThroughput(figures: Figures): void {
  const [edge, spread] = figures.map(({ perSecond }) => perSecond)
  const ratio = (one: number[], other: number[]) => median(one.map((value, round) => value / other[round]!))
  const rows = [['10 KB file', 'requests/s', 'least', 'most', 'edge / it', `${workers} workers / it`]]
  for (const { name, perSecond } of figures) {
    const values = [median(perSecond), Math.min(...perSecond), Math.max(...perSecond)].map((value) => value.toFixed(0))
    rows.push([name, ...values, ratio(edge!, perSecond).toFixed(2), ratio(spread!, perSecond).toFixed(2)])
  }
  console.log(`${table(rows)}\n`)
  const bounds = [
    ['Caddy', 'requests/s at least', edge!, wanted.caddy],
    ['nginx', 'requests/s toward', edge!, wanted.nginx],
    ['nginx', `requests/s of ${workers} workers at least`, spread!, wanted.workers],
  ] as const
  for (const [name, phrase, measured, bound] of bounds) {
    const peer = figures.find((one) => one.name === name)
    if (!peer) continue
    const found = ratio(measured, peer.perSecond)
    console.log(verdict(found >= bound, `${phrase} ${bound} of ${name}`, found.toFixed(2)))
  }
  console.log('')
}
