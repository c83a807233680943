import { expect, test, vi } from 'vitest'
import { runCluster } from './cluster.ts'
import { canOpenNetwork } from './network.ts'
import { faultsOf, render } from './report.ts'

vi.setConfig({ testTimeout: 300_000 })

// `npm run test:cluster` is the whole of it: two of each role, a secondary, a real bucket, and every node ended once.
test.skipIf(!canOpenNetwork())(
  'a site and a server outlive the loss of an edge and of a runner, each on a machine of its own',
  async () => {
    const report = await runCluster({
      layout: { api: 1, worker: 1, runner: 2, edge: 2, nameserver: 1, knot: 0, store: 'memory' },
      ends: [
        ['edge-1', 'loss'],
        ['runner-1', 'kill'],
      ],
      writers: 1,
      seed: 4,
    })
    expect(faultsOf(report), render(report)).toEqual([])
    expect(report.acknowledged).toBeGreaterThan(20)
    for (const { asked } of Object.values(report.visits)) expect(asked).toBeGreaterThan(20)
  },
)
