import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startWorker } from '../../../src/jobs/worker.ts'
import { closeDatabase, openDatabase } from '../../../src/platform/database/database.ts'
import { until } from '../../helpers/until.ts'
import { isPebbleInstalled, startPebble } from './pebble.ts'
import { served, startWorld, type World } from './world.ts'

const installed = isPebbleInstalled()
const past = () => new Date(Date.now() - 1_000)

let world: World
beforeAll(async () => {
  if (installed) world = await startWorld()
})
afterAll(() => world?.stop())

describe.skipIf(!installed)('one order is made', () => {
  test('by ten workers that want the same certificate at the same moment', async () => {
    const id = await world.verified('crowd.com')
    const engines = await Promise.all(Array.from({ length: 10 }, () => world.engine()))
    await Promise.all(engines.map((engine) => world.run(id, engine)))
    expect(world.pebble.orders()).toBe(1)
    // All ten share one account, although each of them found none.
    expect(world.pebble.log()).not.toMatch('There are now 2 accounts')
    expect(await world.domain('crowd.com')).toMatchObject({ ssl: 'ACTIVE' })
    // Whoever came too late looks again later and finds nothing to do.
    await world.run(id)
    expect(world.pebble.orders()).toBe(1)
  })

  test('even when the worker that made it is lost in the middle, together with its way to the database', async () => {
    const { databaseUrl, db, pebble } = world
    const orders = pebble.orders()
    const id = await world.verified('restart.com')
    const lost = openDatabase(databaseUrl, 2)
    // Nothing listens on port 1, so it waits there for its challenge to be seen.
    const doomed = await world.engine({ db: lost, challengeServers: { nameservers: [], edges: ['127.0.0.1:1'] } })
    const stopping = new AbortController()
    const running = world.run(id, doomed, stopping.signal).catch(() => 'lost')
    await until(async () => (await db.acmeChallenge.count({ where: { name: 'restart.com' } })) > 0)
    await closeDatabase(lost)
    stopping.abort()
    expect(await running).toBe('lost')
    const [order] = await db.acmeOrder.findMany()
    expect(order!.url).toMatch(/^https:/)
    // While the lease of the dead lives, nobody touches the order.
    await world.run(id)
    expect(await world.domain('restart.com')).toMatchObject({ ssl: 'ISSUING' })
    // What passes in half a minute, at once.
    await db.acmeOrder.updateMany({ data: { leasedUntil: past() } })
    await world.run(id)
    expect(await world.domain('restart.com')).toMatchObject({ ssl: 'ACTIVE' })
    expect(pebble.orders() - orders).toBe(1)
  })
})

describe.skipIf(!installed)('a certificate is renewed', () => {
  test('with a new key when its time has come, and ACTIVE all the while', async () => {
    const id = await world.verified('renew.com')
    await world.run(id)
    const before = (await served(world, id))!
    await world.run(id)
    expect((await served(world, id))!.row.id).toBe(before.row.id)
    await world.db.certificate.update({ where: { id: before.row.id }, data: { renewAt: past() } })
    await world.run(id)
    const after = (await served(world, id))!
    expect(after.leaf.publicKey.equals(before.leaf.publicKey)).toBe(false)
    expect(await world.db.certificate.findUnique({ where: { id: before.row.id } })).toBeNull()
    const { body } = await world.call('GET', '/events?subject=renew.com&order=asc')
    const types = body.events.map(({ type }: { type: string }) => type).filter((type: string) => /ssl/.test(type))
    expect(types).toEqual(['domain.ssl.active', 'domain.ssl.renewed'])
    // Two thirds of the way from one end to the other, when the job comes back at the latest.
    const { notBefore, notAfter, renewAt } = after.row
    const share = (renewAt.getTime() - notBefore.getTime()) / (notAfter.getTime() - notBefore.getTime())
    expect(share).toBeCloseTo(2 / 3, 3)
    const job = await world.db.job.findFirstOrThrow({ where: { kind: 'issue', key: id } })
    expect(job.runAt.getTime()).toBeLessThanOrEqual(renewAt.getTime())
  })
})

describe.skipIf(!installed)('an authority that is away', () => {
  test('leaves certificates in service, ACTIVE until they end and EXPIRED then, and all is made up for when it is back', async () => {
    const { db, pebble, deps } = world
    const patient = await world.engine({ retry: { delaysMs: [3_600_000], refusedMs: 3_600_000 } })
    const old = await world.verified('served.com')
    await world.run(old, patient)
    const before = (await served(world, old))!.row
    const fresh = await world.verified('fresh.com')
    await pebble.kill()

    await db.certificate.update({ where: { id: before.id }, data: { renewAt: past() } })
    await world.run(old, patient)
    await world.run(fresh, patient)
    const kept = await world.domain('served.com')
    expect(kept).toMatchObject({ ssl: 'ACTIVE', certificate: { issuer: before.issuer } })
    expect(kept.certificate.lastError).toMatch(/^The certificate authority at 127\.0\.0\.1:\d+ cannot be reached/)
    expect(Date.parse(kept.certificate.nextAttemptAt)).toBeGreaterThan(Date.now() + 3_500_000)
    expect((await served(world, old))!.row.id).toBe(before.id)
    expect(await world.domain('fresh.com')).toMatchObject({ ssl: 'ERROR', certificate: { issuer: null } })

    await db.certificate.update({ where: { id: before.id }, data: { notAfter: past() } })
    await world.run(old, patient)
    expect(await world.domain('served.com')).toMatchObject({ ssl: 'EXPIRED' })
    expect((await served(world, old))!.row.id).toBe(before.id)

    // It has forgotten everything, our account too. The hour passes at once.
    await pebble.start()
    await db.domain.updateMany({ data: { certificateFailures: 0 } })
    await db.job.updateMany({ where: { key: { in: [old, fresh] } }, data: { runAt: past() } })
    const worker = startWorker(db, deps.notifications, deps.log, { issue: patient.issue })
    try {
      for (const name of ['served.com', 'fresh.com']) {
        await until(async () => (await world.domain(name)).ssl === 'ACTIVE')
        expect((await world.domain(name)).certificate.lastError).toBeNull()
      }
    } finally {
      await worker.stop()
    }
    const { body } = await world.call('GET', '/events?subject=served.com&order=asc')
    const types = body.events.map(({ type }: { type: string }) => type).filter((type: string) => /ssl/.test(type))
    expect(types).toEqual(['domain.ssl.active', 'domain.ssl.expired', 'domain.ssl.active'])
  })

  test('without knowing us refuses, and serves those who show what it gave them', async () => {
    const { config } = world
    const key = Buffer.alloc(32, 9).toString('base64url')
    const [dnsServer] = config.nameserverListen as [string]
    const pebble = await startPebble({ dnsServer, httpPort: config.edge.httpPort, eab: { 'key-1': key } })
    try {
      const id = await world.verified('bound.com')
      const acme = { directoryUrl: pebble.directoryUrl, caFile: pebble.caFile, email: 'ops@bound.com', eab: null }
      await world.run(id, await world.engine({ config: { ...config, acme } }))
      const { certificate } = await world.domain('bound.com')
      expect(certificate.lastError).toMatch(/\(externalAccountRequired\)$/)
      await world.db.domain.update({ where: { id }, data: { certificateFailures: 0 } })
      const eab = { kid: 'key-1', key }
      await world.run(id, await world.engine({ config: { ...config, acme: { ...acme, eab } } }))
      expect(await world.domain('bound.com')).toMatchObject({ ssl: 'ACTIVE' })
    } finally {
      await pebble.stop()
    }
  })
})
