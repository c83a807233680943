import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { deleteDeployment } from '../../../src/services/deployments/deployments.ts'
import { deleteDomain } from '../../../src/services/domains/domains.ts'
import { markUnverified, recordCheck } from '../../../src/services/domains/states.ts'
import { promoteDeployment } from '../../../src/services/production/promotion.ts'
import { deleteProject } from '../../../src/services/projects/projects.ts'
import { postgresUrl } from '../../helpers/database.ts'
import { until } from '../../helpers/until.ts'
import { startWorld, type World } from './world.ts'

let world: World
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.stop())

const text = async (host: string, path = '/') => {
  const answer = await world.get(host, path)
  return answer.status === 200 ? answer.text : String(answer.status)
}
const promote = (id: string) => promoteDeployment(world.db, world.urls, world.actor, { id: id })
const shows = (host: string, expected: string) => until(async () => (await text(host)) === expected)

describe('a deployment', () => {
  test('is at its own host from READY until it is deleted, and not in production unless asked for', async () => {
    await world.newProject('one')
    const first = await world.deploy('one', { 'index.html': 'first' }, { ready: false })
    expect(await text(first.host)).toBe('404')
    await world.ready(first.id)
    await shows(first.host, 'first')
    expect(await text('one.localhost')).toBe('404')
    await deleteDeployment(world.db, world.urls, world.actor, { id: first.id, precondition: () => {} })
    await shows(first.host, '404')
  })

  test('that an older one overtakes keeps production', async () => {
    await world.newProject('late')
    const older = await world.deploy('late', { 'index.html': 'older' }, { production: true, ready: false })
    await world.deploy('late', { 'index.html': 'newer' }, { production: true })
    await shows('late.localhost', 'newer')
    await world.ready(older.id)
    await shows(older.host, 'older')
    expect(await text('late.localhost')).toBe('newer')
  })
})

describe('production', () => {
  test('moves on all hosts of a project at once, within a second of READY and of a promotion', async () => {
    await world.site('shop', { 'index.html': 'v1' })
    const domains = ['shop.test', 'www.shop.test', 'b.shop.test', 'c.shop.test']
    for (const domain of domains) await world.attach('shop', domain)
    const hosts = ['shop.localhost', ...domains]
    for (const host of hosts) await shows(host, 'v1')
    // From the first host that shows the new one on, every later answer must show it.
    const watch = async (expected: string) => {
      for (let seen = 0; seen < hosts.length * 2; ) {
        for (const host of hosts) {
          const now = await text(host)
          if (now === expected) seen++
          else expect([host, seen]).toEqual([host, 0])
        }
      }
    }
    const next = await world.deploy('shop', { 'index.html': 'v2' }, { production: true, ready: false })
    const watching = watch('v2')
    await world.ready(next.id)
    await watching
    const old = await world.db.deployment.findFirstOrThrow({
      where: { project: { name: 'shop' } },
      orderBy: { id: 'asc' },
    })
    const rollback = watch('v1')
    await promote(old.id)
    await rollback
  })

  test('goes back and forth under load without a failed or mixed answer', async () => {
    await world.newProject('swing')
    const build = (name: string) => ({
      'index.html': `<b>${name}</b>`.repeat(1_000),
      '404.html': `lost ${name}`,
      _headers: `/*\n  X-Version: ${name}`,
    })
    const a = await world.deploy('swing', build('a'), { production: true })
    const b = await world.deploy('swing', build('b'))
    await until(() => world.edge.snapshot!.find('swing.localhost')?.target)
    let done = false
    const seen = { a: 0, b: 0 }
    const visit = async () => {
      while (!done) {
        for (const path of ['/', '/nope']) {
          const { status, headers, text } = await world.get('swing.localhost', path)
          const version = headers['x-version'] as 'a' | 'b'
          seen[version]++
          expect(status).toBe(path === '/' ? 200 : 404)
          expect(text).toBe(path === '/' ? `<b>${version}</b>`.repeat(1_000) : `lost ${version}`)
        }
      }
    }
    const visitors = Array.from({ length: 8 }, visit)
    for (let i = 0; i < 20; i++) {
      const version = i % 2 === 0 ? 'b' : 'a'
      const before = seen[version]
      await promote(version === 'b' ? b.id : a.id)
      await until(() => seen[version] > before + 5)
    }
    done = true
    await Promise.all(visitors)
    expect(Math.min(seen.a, seen.b)).toBeGreaterThan(50)
  })
})

describe('a domain', () => {
  test('shows its project once it is verified, with www beside it, until it is deleted', async () => {
    await world.site('own', { 'index.html': 'mine' })
    expect(await text('own.test')).toBe('404')
    await world.attach('own', 'own.test')
    await shows('own.test', 'mine')
    expect(await text('www.own.test')).toBe('mine')
    expect(await text('other.own.test')).toBe('404')
    expect(await text('www.own.localhost')).toBe('404')
    await deleteDomain(world.db, world.config, world.actor, { path: 'own.test', precondition: () => {} })
    await shows('own.test', '404')
    expect(await text('www.own.test')).toBe('404')
  })

  test('is gone when its ownership is lost', async () => {
    await world.site('lost', { 'index.html': 'mine' })
    const id = await world.attach('lost', 'lost.test')
    await shows('lost.test', 'mine')
    const observed = { nameservers: [], txt: [] }
    const check = { observed, outcome: 'missed' as const, reason: 'gone', nextCheckAt: null }
    // Misses of one day count as one; the first two were on other days.
    await world.db.domain.update({ where: { id }, data: { misses: 2 } })
    await recordCheck(world.db, id, check)
    await markUnverified(world.db, world.config, id, { observed: check.observed, reason: 'gone' })
    await shows('lost.test', '404')
    expect(await text('lost.localhost')).toBe('mine')
  })

  test('may be a wildcard for one label, behind names of their own', async () => {
    await world.site('wild', { 'index.html': 'wild' })
    await world.site('tame', { 'index.html': 'tame' })
    await world.attach('tame', 'wild.test')
    await world.attach('wild', '*.wild.test')
    await world.attach('tame', 'exact.wild.test')
    await shows('exact.wild.test', 'tame')
    expect(await Promise.all(['a', 'www', 'a.b'].map((label) => text(`${label}.wild.test`)))).toEqual([
      'wild',
      'wild',
      '404',
    ])
    expect(await text('wild.test')).toBe('tame')
  })

  test('that moves to another project is never lost on the way', async () => {
    await world.site('from', { 'index.html': 'from' })
    await world.site('to', { 'index.html': 'to' })
    await world.attach('from', 'moving.test')
    await shows('moving.test', 'from')
    await deleteDomain(world.db, world.config, world.actor, { path: 'moving.test', precondition: () => {} })
    await world.attach('to', 'moving.test')
    await shows('moving.test', 'to')
  })
})

test('a deleted project takes all its hosts along', async () => {
  const host = await world.site('short', { 'index.html': 'x' })
  const preview = await world.deploy('short', { 'index.html': 'y' })
  await shows(preview.host, 'y')
  const size = world.edge.snapshot!.size
  await deleteProject(world.db, world.urls, world.actor, { key: 'short', precondition: () => {} })
  await shows(host, '404')
  await shows(preview.host, '404')
  // Those of production, its branch and two deployments.
  expect(world.edge.snapshot!.size).toBe(size - 4)
})

test('many changes at once are read together', async () => {
  await world.newProject('many')
  const made = await Promise.all(
    Array.from({ length: 30 }, (_, i) => world.deploy('many', { 'index.html': `page ${i}` }, { ready: false })),
  )
  await Promise.all(made.map(({ id }) => world.ready(id)))
  for (const [i, { host }] of made.entries()) await shows(host, `page ${i}`)
})

test('while PostgreSQL is away everything known is served, and what was missed comes when it is back', async () => {
  const host = await world.site('calm', { 'index.html': 'v1' })
  const next = await world.deploy('calm', { 'index.html': 'v2', 'never-asked.txt': 'from disk' })
  await shows(next.host, 'v2')
  const unseen = await world.deploy('calm', { 'index.html': 'v3' })
  await until(() => world.edge.snapshot!.find(unseen.host))
  // Changed behind the edge's back: no event tells of it, as if the notice had been lost with the connection.
  await world.db.$executeRaw`UPDATE project SET current_deployment_id = ${next.id} WHERE name = 'calm'`
  const name = new URL(world.databaseUrl).pathname.slice(1)
  const admin = new pg.Client({ connectionString: postgresUrl() })
  await admin.connect()
  await admin.query(`ALTER DATABASE ${name} ALLOW_CONNECTIONS false`)
  await admin.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1', [name])
  await until(() => !world.notifications.connected)
  expect(await text(host)).toBe('v1')
  expect(await text(unseen.host)).toBe('v3')
  expect(await text(next.host, '/never-asked.txt')).toBe('from disk')
  await admin.query(`ALTER DATABASE ${name} ALLOW_CONNECTIONS true`)
  await admin.end()
  await until(async () => (await text(host)) === 'v2')
  const last = await world.deploy('calm', { 'index.html': 'v4' }, { production: true })
  await shows(host, 'v4')
  expect(await text(last.host)).toBe('v4')
})
