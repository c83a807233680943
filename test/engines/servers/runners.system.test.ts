// Instances over several runners: where they are placed, who has them, and what visitors notice.
import { connect } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { until } from '../../helpers/until.ts'
import { type Cluster, isAlive, leaseMs, startCluster, type TestRunner } from './cluster.ts'

let cluster: Cluster
const runners: TestRunner[] = []
beforeAll(async () => {
  cluster = await startCluster()
})
afterAll(() => cluster.stop())
afterEach(async () => {
  await cluster.db.project.updateMany({ data: { currentDeploymentId: null } })
  await cluster.db.instance.deleteMany()
  for (const runner of runners.splice(0)) await runner.close()
})

async function start(...ids: string[]): Promise<TestRunner[]> {
  for (const id of ids) runners.push(await cluster.addRunner(id))
  return runners
}

/** Visits without a pause until it is told to stop; rejects if one of them fails. */
function visitors(host: string): { stop(): Promise<Set<string>> } {
  const answered = new Set<string>()
  let over = false
  const all = Promise.all(
    Array.from({ length: 3 }, async () => {
      while (!over) answered.add(await cluster.visit(host))
    }),
  )
  all.catch(() => {})
  return {
    async stop() {
      over = true
      await all
      return answered
    },
  }
}

/** All processes that answer at a host. */
async function processesAt(host: string, count: number): Promise<string[]> {
  const found = new Set<string>()
  await until(async () => found.add(await cluster.visit(host)).size === count)
  return [...found]
}

test('instances are spread over runners, all of them get visitors, and there are as many as the project wants', async () => {
  await start('one', 'two')
  const { id } = await cluster.serve('spread', 3)
  const held = await cluster.healthy(id, 3)
  expect(new Set(held.map(({ node }) => node))).toEqual(new Set(['one', 'two']))
  const before = await processesAt('spread.localhost', 3)
  await cluster.scale('spread', 1)
  await cluster.healthy(id, 1)
  await until(() => before.filter(isAlive).length === 1)
  await cluster.scale('spread', 2)
  const [first, second] = await cluster.healthy(id, 2)
  expect(first!.node).not.toBe(second!.node)
  expect((await processesAt('spread.localhost', 2)).length).toBe(2)
})

test('a runner that joins later gets an instance of what one node has alone, and no visitor notices', async () => {
  await start('one')
  const { id } = await cluster.serve('joined', 2)
  await cluster.healthy(id, 2)
  const load = visitors('joined.localhost')
  await start('two')
  const nodes = async () => (await cluster.healthy(id, 2)).map(({ node }) => node).sort()
  await until(async () => (await nodes()).join() === 'one,two')
  await processesAt('joined.localhost', 2)
  await load.stop()
})

test('a runner that cannot renew its lease loses its instances; when it is back, it ends them', async () => {
  await start('one', 'two')
  const { id } = await cluster.serve('lost')
  const [held] = await cluster.healthy(id, 1)
  const mark = await cluster.visit('lost.localhost')
  const load = visitors('lost.localhost')
  const cut = runners.find((runner) => runner.id === held!.node)!
  cut.link.cut()
  await until(async () => (await cluster.instances(id)).some(({ node }) => node !== held!.node))
  await cluster.healthy(id, 1)
  await until(async () => (await cluster.visit('lost.localhost')) !== mark)
  // Two processes, of which one knows nothing of the other; edges ask the one that has the lease.
  expect(isAlive(mark)).toBe(true)
  await cut.link.mend()
  await until(() => !isAlive(mark))
  const answered = await load.stop()
  expect(answered.size).toBe(2)
  expect(await cluster.instances(id)).toMatchObject([{ state: 'healthy' }])
})

test('an outage of the database moves nothing: what runs is served, and stays where it is', async () => {
  await start('one', 'two')
  const { id } = await cluster.serve('outage', 2)
  const before = await cluster.healthy(id, 2)
  const marks = await processesAt('outage.localhost', 2)
  const load = visitors('outage.localhost')
  for (const { link } of runners) link.cut()
  const expired = () => cluster.db.runner.count({ where: { leasedUntil: { lt: new Date() } } })
  await until(async () => (await expired()) === 2)
  for (const { link } of runners) await link.mend()
  await until(async () => (await expired()) === 0)
  // As long as it takes until a lost runner would be noticed.
  const renewed = await cluster.db.runner.findMany()
  await until(async () =>
    (await cluster.db.runner.findMany()).every(
      ({ leasedUntil }, n) => leasedUntil.getTime() > renewed[n]!.leasedUntil.getTime() + 1.3 * leaseMs,
    ),
  )
  expect(await cluster.instances(id)).toEqual(before)
  expect([...(await load.stop())].sort()).toEqual(marks.sort())
})

test('a runner that is drained hands its instances over without a failed request', async () => {
  await start('one', 'two')
  const { id } = await cluster.serve('drained')
  const [held] = await cluster.healthy(id, 1)
  const mark = await cluster.visit('drained.localhost')
  const load = visitors('drained.localhost')
  const leaving = runners.find((runner) => runner.id === held!.node)!
  leaving.drain()
  await until(() => !isAlive(mark))
  const [moved] = await cluster.healthy(id, 1)
  expect(moved).toMatchObject({ slot: 0 })
  expect(moved!.node).not.toBe(held!.node)
  await leaving.close()
  expect((await load.stop()).size).toBe(2)
})

test('a server that crashes is started again where it was, and visitors wait', async () => {
  await start('one')
  const { id } = await cluster.serve('crashing')
  const [before] = await cluster.healthy(id, 1)
  const mark = await cluster.visit('crashing.localhost')
  expect((await cluster.get('crashing.localhost', '/exit')).status).toBe(502)
  expect(await cluster.visit('crashing.localhost')).not.toBe(mark)
  await until(async () => (await cluster.instances(id))[0]?.state === 'healthy')
  expect((await cluster.instances(id))[0]!.term).toBe(before!.term)
})

test('WebSockets pass to another node, and end with the instance', async () => {
  await start('one')
  const { id } = await cluster.serve('sockets')
  await cluster.healthy(id, 1)
  const socket = connect(cluster.port, '127.0.0.1')
  socket.write('GET / HTTP/1.1\r\nHost: sockets.localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
  let text = ''
  socket.setEncoding('latin1').on('data', (chunk) => (text += chunk))
  const ended = new Promise((resolve) => socket.on('close', resolve))
  const mark = await until(() => /mark-[0-9a-f-]{36}$/.exec(text)?.[0])
  expect(isAlive(mark)).toBe(true)
  await cluster.db.deployment.deleteMany({ where: { id } })
  for (const runner of runners.splice(0)) await runner.close()
  await ended
  expect(isAlive(mark)).toBe(false)
})

describe('a deployment that does not serve production', () => {
  test('is started for who asks for it, and for nobody when it is barred', async () => {
    await start('one')
    const { id, host } = await cluster.serve('preview')
    await cluster.healthy(id, 1)
    const before = await cluster.visit(host)
    await cluster.db.project.updateMany({ where: { name: 'preview' }, data: { currentDeploymentId: null } })
    await cluster.db.instance.deleteMany()
    await until(() => !isAlive(before))
    const mark = await cluster.visit(host)
    expect(isAlive(mark)).toBe(true)
    expect(await cluster.instances(id)).toMatchObject([{ slot: 0, node: 'one' }])
    await cluster.db.account.updateMany({ data: { suspendedAt: new Date() } })
    // The edge is not told of it here: a request that gets as far as this asks in vain.
    await cluster.db.instance.deleteMany()
    await until(() => !isAlive(mark))
    const waiting = cluster.get(host, '/')
    await until(async () => (await cluster.db.runner.count()) === 1)
    expect(await cluster.instances(id)).toEqual([])
    await cluster.db.account.updateMany({ data: { suspendedAt: null } })
    expect((await waiting).status).toBe(200)
  })
})
