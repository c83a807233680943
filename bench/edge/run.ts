// `npm run bench -- edge`: a large and a small file from the edge, Caddy and nginx in turns; then the edge with many
// deployments. `--only large|throughput|scale`.

import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { median, medianRatio, table, verdict } from '../figures.ts'
import { findProgram } from '../programs.ts'
import { measureLarge } from './large.ts'
import { type Peer, startCaddy, startNginx } from './peers.ts'
import { compiledProgram, type EdgeProcess, startEdge } from './processes.ts'
import { type EdgeBench, figures } from './rows.ts'
import { measureScale, reportScale, type Sizes, type Start } from './scale.ts'
import { deploymentHost, fileContent, filePath, seed } from './seed.ts'
import { load } from './visits.ts'

const limits = { caddy: 1, nginx: 0.5, workers: 0.6 }
// Of the edge and of nginx.
const workers = 2
const connections = 64

export const group = {
  about: 'Files from the edge over HTTP',
  figures,
  async run(bench: EdgeBench): Promise<void> {
    const wants = (part: string) => bench.only === '' || bench.only === part
    const sizes = { few: 10, many: bench.size(10_000, 50) }
    const start = await prepare(bench, sizes)
    if (wants('large')) await measureLarge(bench, join(bench.directory, `edge-${sizes.few}`), () => start(sizes.few))
    if (wants('throughput'))
      await measureThroughput(
        bench,
        () => start(sizes.few),
        () => start(sizes.few, workers),
      )
    if (wants('scale')) reportScale(bench, await measureScale(bench, start, sizes), sizes)
  },
}

/** Fills a database and a data directory for each size; the edges are started later. */
async function prepare({ directory, startPostgres }: EdgeBench, sizes: Sizes): Promise<Start> {
  const postgres = await startPostgres()
  const urls = new Map<number, string>()
  const dataDirOf = (size: number) => join(directory, `edge-${size}`)
  for (const size of Object.values(sizes)) {
    await mkdir(dataDirOf(size))
    urls.set(size, await seed(postgres, `edge_${size}`, dataDirOf(size), size))
  }
  const program = await compiledProgram()
  return (size, workers = 0) => {
    const environment = { DATABASE_URL: urls.get(size)!, DATA_DIR: dataDirOf(size), WORKERS: String(workers) }
    return startEdge(program, environment, join(directory, `edge-${size}-${workers}.log`))
  }
}

type Measured = { name: string; perSecond: number[] }[]
type StartEdge = () => Promise<EdgeProcess>

async function measureThroughput(bench: EdgeBench, startOne: StartEdge, startWorkers: StartEdge): Promise<void> {
  const { directory } = bench
  const [rounds, seconds] = [bench.rounds(5), bench.seconds(3)]
  const wrk = findProgram('wrk')
  if (wrk === null) return
  const served = join(directory, 'served')
  await mkdir(served)
  await chmod(served, 0o755)
  await writeFile(join(served, filePath), fileContent(1), { mode: 0o644 })
  const servers: Peer[] = []
  try {
    servers.push({ name: 'edge', ...(await startOne()) })
    servers.push({ name: `edge, ${workers} workers`, ...(await startWorkers()) })
    for (const startPeer of [startCaddy, startNginx]) {
      const peer = await startPeer(directory, served)
      if (peer) servers.push(peer)
    }
    const slice = (server: Peer, seconds: number) =>
      load(wrk, `http://127.0.0.1:${server.port}${filePath}`, `Host: ${deploymentHost(1)}`, { connections, seconds })
    const measured: Measured = servers.map(({ name }) => ({ name, perSecond: [] }))
    for (const server of servers) {
      await expectFile(server)
      if (!bench.smoke) await slice(server, 2)
    }
    for (let round = 0; round < rounds; round++) {
      console.error(`requests/s, round ${round + 1} of ${rounds} …`)
      // Alternates the order, so that a machine that gets slower or faster favours no side.
      for (const index of round % 2 === 0 ? servers.keys() : [...servers.keys()].reverse()) {
        measured[index]!.perSecond.push(await slice(servers[index]!, seconds))
      }
    }
    reportThroughput(bench, measured)
  } finally {
    for (const server of servers) await server.stop()
  }
}

/** Checks that all serve the same bytes. */
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

function reportThroughput(bench: EdgeBench, measured: Measured): void {
  const [edge, spread] = measured.map(({ perSecond }) => perSecond)
  const rows = [['10 KB file', 'requests/s', 'least', 'most', 'edge / it', `${workers} workers / it`]]
  for (const { name, perSecond } of measured) {
    const values = [median(perSecond), Math.min(...perSecond), Math.max(...perSecond)].map((value) => value.toFixed(0))
    rows.push([name, ...values, medianRatio(edge!, perSecond).toFixed(2), medianRatio(spread!, perSecond).toFixed(2)])
  }
  console.log(`${table(rows)}\n`)
  const bounds = [
    ['caddy', 'Caddy', 'requests/s at least', edge!],
    ['nginx', 'nginx', 'requests/s toward', edge!],
    ['workers', 'nginx', `requests/s of ${workers} workers at least`, spread!],
  ] as const
  for (const [figure, name, phrase, ours] of bounds) {
    const peer = measured.find((one) => one.name === name)
    if (!peer) continue
    const found = medianRatio(ours, peer.perSecond)
    bench.record(figure, found)
    console.log(verdict(found >= limits[figure], `${phrase} ${limits[figure]} of ${name}`, found.toFixed(2)))
  }
  console.log('')
}
