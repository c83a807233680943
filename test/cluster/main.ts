// `npm run test:cluster`: two machines for each role, a secondary, a bucket; each of them ends once, under load.
import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import { hasRadosgw } from '../helpers/radosgw.ts'
import { runCluster } from './cluster.ts'
import { canOpenNetwork } from './network.ts'
import { faultsOf, render } from './report.ts'

const { values } = parseArgs({ options: { seed: { type: 'string' }, only: { type: 'string' } } })
const began = performance.now()
const say = (line: string) =>
  console.error(`${String(Math.round((performance.now() - began) / 1000)).padStart(5)} s  ${line}`)

if (!canOpenNetwork()) throw new Error('This needs root on Linux, with iproute2 and util-linux.')
const interrupted = new AbortController()
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => interrupted.abort())

const store = hasRadosgw() ? 'radosgw' : 'memory'
const report = await runCluster({
  layout: { api: 2, worker: 2, runner: 2, edge: 2, nameserver: 2, knot: 1, store },
  seed: values.seed === undefined ? randomInt(1e9) : Number(values.seed),
  // Such as `edge-1=kill,edge-2=loss`.
  ...(values.only && { ends: values.only.split(',').map((one) => one.split('=') as [string, 'kill' | 'loss']) }),
  say,
  signal: interrupted.signal,
})
console.log(`\n${render(report)}`)
process.exitCode = faultsOf(report).length === 0 ? 0 : 1
