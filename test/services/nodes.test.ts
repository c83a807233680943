// The processes of an installation: who is there, who is lost, and who drains.
import { pino } from 'pino'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { closeDatabase, type Database, openDatabase } from '../../src/platform/database/database.ts'
import { listen, type Notifications } from '../../src/platform/database/notifications.ts'
import { Draining } from '../../src/platform/observe/draining.ts'
import { createLoadMeter, type LoadMeter } from '../../src/services/nodes/load.ts'
import { type Node, startNode } from '../../src/services/nodes/node.ts'
import { deleteLostNodes, drainNodes, listAllNodes } from '../../src/services/nodes/nodes.ts'
import { createDatabase } from '../helpers/database.ts'
import { type Link, openLink } from '../helpers/link.ts'
import { until } from '../helpers/until.ts'

const log = pino({ level: 'silent' })
let database: Awaited<ReturnType<typeof createDatabase>>
let db: Database
let notifications: Notifications
const running: Node[] = []

beforeAll(async () => {
  database = await createDatabase()
  db = openDatabase(database.url, 8)
  notifications = await listen(database.url, log)
})
afterEach(async () => {
  for (const node of running.splice(0)) await node.close()
  await db.node.deleteMany()
})
afterAll(async () => {
  await notifications.close()
  await closeDatabase(db)
  await database.drop()
})

type Options = { name?: string; roles?: string[]; heartbeatMs?: number; load?: LoadMeter; workerDb?: Database }

async function start(options: Options = {}): Promise<Node> {
  const { name = 'web-1', roles = ['edge'], heartbeatMs = 3_600_000, load, workerDb = db } = options
  const deps = {
    config: { nodeName: name, nodeAddress: '10.0.0.1' },
    workerDb,
    notifications,
    log,
    draining: new Draining(),
    load: load ?? createLoadMeter(),
  }
  const node = await startNode(deps, roles, heartbeatMs)
  running.push(node)
  return node
}

const find = async (id: string) => (await listAllNodes(db)).find((node) => node.id === id)
const there = (id: string) => until(() => find(id))
const silentFor = (id: string, seconds: number) =>
  db.node.update({ where: { id }, data: { heartbeatAt: new Date(Date.now() - seconds * 1000) } })

/** A database that may be cut off or hang. */
async function throughLink(work: (link: Link, workerDb: Database) => Promise<void>): Promise<void> {
  const link = await openLink(database.url)
  const workerDb = openDatabase(link.url, 2)
  await work(link, workerDb)
  link.close()
  await closeDatabase(workerDb)
}

describe('a node', () => {
  test('is listed with its roles and what it does from its start to its end', async () => {
    const load = createLoadMeter()
    load.add('jobs', () => 3)
    const { id, close } = await start({ roles: ['worker', 'api'], load })
    const shown = await there(id)
    expect(shown).toMatchObject({ name: 'web-1', roles: ['api', 'worker'], address: '10.0.0.1', state: 'ACTIVE' })
    expect(shown).toMatchObject({ version: expect.stringMatching(/^\d+\.\d+\.\d+/), load: { work: { jobs: 3 } } })
    expect(shown.load.cpu).toBeGreaterThanOrEqual(0)
    expect(shown.load.memoryBytes).toBeGreaterThan(10_000_000)
    await close()
    expect(await listAllNodes(db)).toEqual([])
  })

  test('beats, so that it is not lost, and comes back if its row is gone', async () => {
    const { id } = await start({ heartbeatMs: 10 })
    const before = (await there(id)).heartbeatAt
    await until(async () => (await find(id))!.heartbeatAt > before)
    await db.node.deleteMany()
    await there(id)
  })

  test('that is not heard of is lost, cannot be drained, and is forgotten after a day', async () => {
    const { id } = await start()
    await there(id)
    await silentFor(id, 15)
    expect(await find(id)).toMatchObject({ state: 'ACTIVE' })
    await silentFor(id, 20)
    expect(await find(id)).toMatchObject({ state: 'LOST' })
    expect(await drainNodes(db, id, true)).toEqual([])
    await silentFor(id, 23 * 3600)
    expect(await deleteLostNodes(db)).toBe(0)
    await silentFor(id, 25 * 3600)
    expect(await deleteLostNodes(db)).toBe(1)
  })

  test('takes the place of one that was lost before it under the same name, and of no other', async () => {
    const lost = async (id: string, name: string, role: string, heartbeatAt: Date) => {
      const load = { cpu: 0, memoryBytes: 1, work: {} }
      await db.node.create({ data: { id, name, roles: [role], version: '1', load, heartbeatAt } })
    }
    const long = new Date(Date.now() - 60_000)
    await lost('nod_before', 'web-1', 'edge', long)
    await lost('nod_elsewhere', 'web-2', 'edge', long)
    await lost('nod_other_role', 'web-1', 'worker', long)
    // A process of the same kind that still ran when this one started.
    await lost('nod_beside', 'web-1', 'edge', new Date(Date.now() + 60_000))
    const { id } = await start({ heartbeatMs: 10 })
    await there(id)
    expect((await listAllNodes(db)).map((node) => node.id).sort()).toEqual(
      [id, 'nod_elsewhere', 'nod_other_role', 'nod_beside'].sort(),
    )
  })

  test('goes on while the database is away, and is there again with it', async () => {
    await throughLink(async (link, workerDb) => {
      const { id, draining, close } = await start({ heartbeatMs: 10, workerDb })
      await there(id)
      link.cut()
      const isLost = async () => (await silentFor(id, 20)) && (await find(id))!.state === 'LOST'
      await until(isLost)
      expect(draining.aborted).toBe(false)
      await link.mend()
      await until(async () => (await find(id))!.state === 'ACTIVE')
      await close()
    })
  })

  test('ends although the database hangs, and is left in the list', async () => {
    await throughLink(async (link, workerDb) => {
      const { id, close } = await start({ workerDb })
      await there(id)
      link.freeze()
      await close()
      expect(await find(id)).toMatchObject({ id })
    })
  })
})

describe('a drain', () => {
  test('of a node reaches it at once, stays through its heartbeats, and ends', async () => {
    const [one, other] = [await start({ heartbeatMs: 10 }), await start()]
    await Promise.all([there(one.id), there(other.id)])
    const changes: string[] = []
    for (const type of ['abort', 'resume']) one.draining.addEventListener(type, () => changes.push(type))
    expect(await drainNodes(db, one.id, true)).toMatchObject([{ id: one.id }])
    await until(() => one.draining.aborted)
    expect(one.draining.readiness()).toContain('berth undrain')
    const before = (await find(one.id))!.heartbeatAt
    await until(async () => (await find(one.id))!.heartbeatAt > before)
    expect(await find(one.id)).toMatchObject({ state: 'DRAINING' })
    expect(other.draining.aborted).toBe(false)
    await drainNodes(db, one.id, false)
    await until(() => !one.draining.aborted)
    expect(one.draining.readiness()).toBeNull()
    expect(changes).toEqual(['abort', 'resume'])
  })

  test('by a name reaches every process of the machine, by its notification alone', async () => {
    const nodes = [await start({ roles: ['edge'] }), await start({ roles: ['worker'] }), await start({ name: 'web-2' })]
    for (const { id } of nodes) await there(id)
    expect(await drainNodes(db, 'web-1', true)).toHaveLength(2)
    await until(() => nodes.filter(({ draining }) => draining.aborted).length === 2)
    expect(nodes[2]!.draining.aborted).toBe(false)
    expect(await drainNodes(db, 'web-3', true)).toEqual([])
  })

  test('is shown of a process that stops, and an operator cannot take that back', async () => {
    const { id, draining } = await start({ heartbeatMs: 10 })
    await there(id)
    draining.set('stopping', true)
    await until(async () => (await find(id))!.state === 'DRAINING')
    await drainNodes(db, id, false)
    await until(async () => (await find(id))!.state === 'DRAINING')
    expect(draining.readiness()).toContain('stopping')
  })

  test('outlives the loss of its row', async () => {
    const { id, draining } = await start({ heartbeatMs: 10 })
    await there(id)
    await drainNodes(db, id, true)
    await until(() => draining.aborted)
    await db.node.deleteMany()
    await until(async () => (await find(id))?.state === 'DRAINING')
    expect(draining.aborted).toBe(true)
  })
})
