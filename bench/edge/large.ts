// A 100 MB file from the edge, Caddy and nginx in turns, in bytes per second.
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { createArtifacts } from '../../src/platform/artifacts/local-artifacts.ts'
import { median, medianRatio, table, verdict } from '../figures.ts'
import { findProgram } from '../programs.ts'
import { type Peer, startCaddy, startNginx } from './peers.ts'
import type { EdgeProcess } from './processes.ts'
import type { EdgeBench } from './rows.ts'
import { deploymentHost } from './seed.ts'

const run = promisify(execFile)
const minRatio = 0.4
const largePath = '/large.bin'
const largeBytes = 100 * 1000 ** 2

/** Adds the file to the first deployment of a data directory. */
async function addLargeFile(dataDir: string, content: Buffer): Promise<void> {
  const artifacts = createArtifacts(join(dataDir, 'artifacts'))
  const hash = createHash('sha256').update(content).digest('hex')
  await mkdir(dirname(artifacts.pathOf(hash)), { recursive: true })
  await writeFile(artifacts.pathOf(hash), content)
  const path = join(artifacts.folders.manifests, 'dpl_1.json')
  const manifest = JSON.parse(await readFile(path, 'utf8'))
  manifest.files[largePath.slice(1)] = { hash, size: content.length }
  await writeFile(path, JSON.stringify(manifest))
}

/** Megabytes per second of consecutive downloads, as curl measures them. */
async function download(curl: string, port: number, seconds: number): Promise<number> {
  const endMs = performance.now() + 1000 * seconds
  const rates: number[] = []
  do {
    const args = ['-s', '-f', '-o', '/dev/null', '-H', `Host: ${deploymentHost(1)}`]
    args.push('-w', '%{size_download} %{speed_download}', `http://127.0.0.1:${port}${largePath}`)
    const [size, speed] = (await run(curl, args)).stdout.split(' ').map(Number)
    if (size !== largeBytes) throw new Error(`${size} bytes came from port ${port}`)
    rates.push(speed! / 1e6)
  } while (performance.now() < endMs)
  return median(rates)
}

export async function measureLarge(
  bench: EdgeBench,
  dataDir: string,
  start: () => Promise<EdgeProcess>,
): Promise<void> {
  const { directory } = bench
  const [rounds, seconds] = [bench.rounds(5), bench.seconds(3)]
  const curl = findProgram('curl')
  if (curl === null) return
  const content = Buffer.alloc(largeBytes, createHash('sha512').update('berth').digest())
  const served = join(directory, 'large')
  await mkdir(served)
  await chmod(served, 0o755)
  await writeFile(join(served, largePath), content, { mode: 0o644 })
  await addLargeFile(dataDir, content)
  const servers: Peer[] = []
  try {
    servers.push({ name: 'edge', ...(await start()) })
    for (const startPeer of [startCaddy, startNginx]) {
      const peer = await startPeer(served, served)
      if (peer) servers.push(peer)
    }
    const figures = servers.map(({ name }) => ({ name, rates: [] as number[] }))
    for (const { port } of servers) await download(curl, port, 0)
    for (let round = 0; round < rounds; round++) {
      console.error(`100 MB file, round ${round + 1} of ${rounds} …`)
      for (const index of round % 2 === 0 ? servers.keys() : [...servers.keys()].reverse()) {
        figures[index]!.rates.push(await download(curl, servers[index]!.port, seconds))
      }
    }
    report(bench, figures)
  } finally {
    for (const server of servers) await server.stop()
  }
}

function report(bench: EdgeBench, figures: { name: string; rates: number[] }[]): void {
  const edge = figures[0]!.rates
  const rows = [['100 MB file', 'MB/s', 'least', 'most', 'edge / it']]
  for (const { name, rates } of figures) {
    const values = [median(rates), Math.min(...rates), Math.max(...rates)].map((value) => value.toFixed(0))
    rows.push([name, ...values, medianRatio(edge, rates).toFixed(2)])
  }
  console.log(`${table(rows)}\n`)
  const caddy = figures.find(({ name }) => name === 'Caddy')
  if (!caddy) return
  const ratio = medianRatio(edge, caddy.rates)
  bench.record('large', ratio)
  console.log(verdict(ratio >= minRatio, `a 100 MB file at least ${minRatio} of Caddy`, ratio.toFixed(2)))
  console.log('')
}
