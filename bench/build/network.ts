// The cost of a sandbox's network: the time of /bin/true with none, with the proxy, and with a namespace.
import { chmod, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { createSandbox, type Network, type Sandbox } from '../../src/sandbox/sandbox.ts'
import { median, table } from '../figures.ts'
import type { Bench } from '../group.ts'

const reaches: Record<string, Network | null> = {
  none: null,
  registry: { reach: 'registry', private: [] },
  public: { reach: 'public', private: [] },
}

/** Alternates the kinds of network in every round. */
export async function measureNetwork({ directory, size }: Bench, rounds: number): Promise<void> {
  console.error('network of a sandbox …')
  const sandbox = await createSandbox('auto', { searchPath: process.env.PATH ?? '' })
  try {
    const workTree = join(directory, 'network')
    await mkdir(workTree)
    await chmod(workTree, 0o711)
    const measured = new Map(Object.keys(reaches).map((name) => [name, [] as number[]]))
    const warmUps = size(1, 0)
    for (let round = 0; round < warmUps + rounds; round++) {
      for (const [name, network] of Object.entries(reaches)) {
        const tookMs = await timeOf(sandbox, workTree, network)
        if (round >= warmUps) measured.get(name)!.push(tookMs)
      }
    }
    const none = median(measured.get('none')!)
    const rows = [...measured].map(([name, values]) => [
      name,
      ...[median(values), Math.min(...values), Math.max(...values), median(values) - none].map((ms) => ms.toFixed(0)),
    ])
    console.log(`${table([['/bin/true, by network', 'median ms', 'least', 'most', 'above none ms'], ...rows])}\n`)
    if (sandbox.warning) console.log(`${sandbox.warning}\n`)
  } finally {
    await sandbox.close()
  }
}

async function timeOf(sandbox: Sandbox, workTree: string, network: Network | null): Promise<number> {
  const before = performance.now()
  const { code } = await sandbox.run({
    argv: ['/bin/true'],
    workTree,
    environment: {},
    limits: { memoryMb: 256, processes: 64, timeoutMs: 30_000 },
    network,
    onOutput: (_stream, chunk) => process.stderr.write(chunk),
  }).exited
  if (code !== 0) throw new Error(`/bin/true ended with ${code}`)
  return performance.now() - before
}
