// One of two instances hangs: visitors are spared it within a probe, and it is back by itself.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { until } from '../../helpers/until.ts'
import { type Cluster, isAlive, startCluster } from './cluster.ts'

let cluster: Cluster
beforeAll(async () => {
  cluster = await startCluster({ liveness: { everyMs: 100, answerMs: 2_000, failures: 2 } })
})
afterAll(() => cluster.stop())

test('an instance that hangs gets no request while another one answers, and is started again', async () => {
  const runners = [await cluster.addRunner('one'), await cluster.addRunner('two')]
  const { id, host } = await cluster.serve('hung', 2)
  await cluster.healthy(id, 2)
  const marks = new Set<string>()
  await until(async () => marks.add(await cluster.visit(host)).size === 2)
  void cluster.get(host, '/hang').catch(() => {})
  await until(async () => (await cluster.instances(id)).some(({ state }) => state === 'starting'))
  // The edge has heard of it when one visit after the other gets the same answer at once.
  const seen: string[] = []
  await until(async () => {
    seen.push(await cluster.visit(host))
    return new Set(seen.slice(-10)).size === 1 && seen.length >= 10
  })
  const left = seen.at(-1)!
  const hung = [...marks].find((mark) => mark !== left)!
  await until(() => !isAlive(hung))
  await cluster.healthy(id, 2)
  const now = new Set<string>()
  await until(async () => now.add(await cluster.visit(host)).size === 2)
  expect(now).toContain(left)
  expect(now).not.toContain(hung)
  for (const runner of runners) await runner.close()
})
