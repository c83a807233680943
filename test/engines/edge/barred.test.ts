// Suspended accounts and takedowns, as visitors meet them: over HTTP, HTTPS and HTTP/2, on the plain path and beside it.
import { once } from 'node:events'
import { connect } from 'node:net'
import type { Readable } from 'node:stream'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createEdge, type Edge } from '../../../src/engines/edge/serve/server.ts'
import { listen, type Notifications } from '../../../src/platform/database/notifications.ts'
import { createAccount } from '../../../src/services/accounts/accounts.ts'
import { deleteDeployment } from '../../../src/services/deployments/deployments.ts'
import { createDomain, deleteDomain } from '../../../src/services/domains/domains.ts'
import { markVerified } from '../../../src/services/domains/states.ts'
import { promoteDeployment } from '../../../src/services/production/promotion.ts'
import { createProject, deleteProject, findProject } from '../../../src/services/projects/projects.ts'
import { until } from '../../helpers/until.ts'
import { answersWith, expectNeutral, looksOver, looksOverTls, putBack, suspend, takeDown } from './barring.ts'
import { ask, type HttpsWorld, startHttpsWorld } from './https-world.ts'

let world: HttpsWorld
let preview: string
const log = pino({ level: 'silent' })
const files = { 'index.html': 'the secret shop', 'large.bin': Buffer.alloc(48 << 20, 'x') }

beforeAll(async () => {
  world = await startHttpsWorld()
  await world.site('shop', files)
  preview = (await world.deploy('shop', { 'index.html': 'a preview' })).host
  await world.secure('shop', 'shop.test', ['shop.test', 'www.shop.test'])
  await world.attach('shop', 'wild.test')
  await world.secure('shop', '*.wild.test')
  await world.site('other', { 'index.html': 'the other site' })
})
afterAll(() => world.stop())

const hosts = () => ['shop.localhost', preview, 'shop.test', 'www.shop.test', 'any.wild.test', 'more.wild.test']
const encrypted = ['shop.test', 'www.shop.test', 'any.wild.test']
const nothing = { precondition: () => {} }
const projectId = async (name: string) => (await findProject(world.db, world.actor, name)).id

/** What a visitor gets at the first request of an unbarred host: its page, or the way to it by HTTPS. */
const served = (host: string) =>
  until(async () => [200, 308].includes((await world.get(host, '/')).status) && world.edge.snapshot!.find(host)?.target)

async function expectServed(): Promise<void> {
  for (const host of hosts()) await served(host)
  for (const host of encrypted) expect((await world.fetch(host, '/')).text).toBe('the secret shop')
  expect((await world.get('shop.localhost', '/')).text).toBe('the secret shop')
}

async function expectBarred(names: string[]): Promise<void> {
  for (const host of names) await until(() => world.edge.snapshot!.find(host)?.barred)
  for (const host of names) expectNeutral(await looksOver(world, host), ['secret', 'shop', world.actor.accountId])
  for (const host of names.filter((name) => encrypted.includes(name))) {
    const session = await world.session(host)
    expectNeutral(await looksOverTls(world, host, session), ['secret', 'shop'])
    session.close()
  }
}

describe('a suspended account', () => {
  afterAll(async () => void (await suspend(world, world.actor.accountId, false)))

  test('answers the neutral page at every host, by every way, and is back at once when it is resumed', async () => {
    await expectServed()
    const other = await createAccount(world.db, 'other')
    const actor = { ...world.actor, accountId: other.account.id }
    await createProject(world.db, world.urls, actor, { region: 'r', input: { name: 'stranger', repo: 'a/b' } })
    await suspend(world, world.actor.accountId, true)
    await expectBarred([...hosts(), 'other.localhost'])
    await until(async () => (await world.get('stranger.localhost', '/')).text.includes('Nothing deployed yet'))
    await suspend(world, world.actor.accountId, false)
    await expectServed()
    expect((await world.get('other.localhost', '/')).text).toBe('the other site')
  })

  test('is not let in by another spelling of its hosts', async () => {
    const { etag } = (await world.get('shop.localhost', '/')).headers
    await suspend(world, world.actor.accountId, true)
    await until(() => world.edge.snapshot!.find('shop.localhost')?.barred)
    const port = world.port
    for (const host of [
      'SHOP.localhost',
      'shop.localhost.',
      'Shop.LocalHost.:80',
      `shop.localhost:${port}`,
      'SHOP.TEST',
    ]) {
      expectNeutral(await looksOver(world, host, etag), ['secret'])
    }
    const absolute = await world.raw(
      'GET http://shop.localhost/ HTTP/1.1\r\nHost: other.example\r\nConnection: close\r\n\r\n',
    )
    expect(absolute).toMatch(/^HTTP\/1\.1 403 /)
    await suspend(world, world.actor.accountId, false)
    await answersWith(world, 'shop.localhost', 200)
  })

  test('still answers the challenges of a certificate authority', async () => {
    const { db } = world
    await db.acmeOrder.create({ data: { subject: 's', names: [], directory: 'd' } })
    const data = { id: 'chl_1', subject: 's', type: 'http-01', name: 'shop.test', token: 'tok', value: 'tok.key' }
    await db.acmeChallenge.create({ data })
    await suspend(world, world.actor.accountId, true)
    await until(() => world.edge.snapshot!.find('shop.test')?.barred)
    await until(async () => (await world.get('shop.test', '/.well-known/acme-challenge/tok')).text === 'tok.key')
    await suspend(world, world.actor.accountId, false)
    await answersWith(world, 'shop.localhost', 200)
  })
})

describe('a host that is taken down', () => {
  test('answers the neutral page with its www, and the other hosts of the project go on', async () => {
    const { id } = await takeDown(world, { host: 'Shop.test.' })
    await expectBarred(['shop.test', 'www.shop.test'])
    expect((await world.get('shop.localhost', '/')).text).toBe('the secret shop')
    expect((await world.get(preview, '/')).text).toBe('a preview')
    expect((await world.fetch('any.wild.test', '/')).text).toBe('the secret shop')
    await putBack(world, id)
    await expectServed()
  })

  test('may be one name of a wildcard, or all of them', async () => {
    const one = await takeDown(world, { host: 'any.wild.test' })
    await expectBarred(['any.wild.test'])
    expect((await world.fetch('more.wild.test', '/')).text).toBe('the secret shop')
    const all = await takeDown(world, { host: '*.wild.test' })
    await expectBarred(['any.wild.test', 'more.wild.test'])
    // Attached by itself, the name would have a host of its own.
    await world.attach('shop', 'more.wild.test')
    await until(async () => world.edge.snapshot!.settled() === null)
    expectNeutral(await looksOver(world, 'more.wild.test'))
    await putBack(world, all.id)
    await until(() => world.edge.snapshot!.find('more.wild.test')?.target)
    await expectBarred(['any.wild.test'])
    await putBack(world, one.id)
    await expectServed()
  })

  test('may be that of one deployment; production goes on, and its deletion ends the takedown', async () => {
    const { id: deployment, host } = await world.deploy('shop', { 'index.html': 'bad' })
    await answersWith(world, host, 200)
    const { id } = await takeDown(world, { host })
    await expectBarred([host])
    expect((await world.get('shop.localhost', '/')).text).toBe('the secret shop')
    // Promoting it would bring it to production, which is another host.
    await deleteDeployment(world.db, world.urls, world.actor, { id: deployment, ...nothing })
    await answersWith(world, host, 404)
    expect((await world.db.takedown.findUniqueOrThrow({ where: { id } })).endedAt).not.toBeNull()
  })

  test('stays so when its domain is deleted and claimed again, by the same account or another one', async () => {
    await world.attach('shop', 'again.test')
    await served('again.test')
    const { id } = await takeDown(world, { host: 'again.test' })
    await expectBarred(['again.test'])
    await deleteDomain(world.db, world.config, world.actor, { path: 'again.test', ...nothing })
    expectNeutral(await looksOver(world, 'again.test'))
    await world.db.domainHold.deleteMany({})
    const { account } = await createAccount(world.db, 'claimant')
    const actor = { ...world.actor, accountId: account.id }
    await createProject(world.db, world.urls, actor, { region: 'r', input: { name: 'claimed', repo: 'a/b' } })
    await createDomain(world.db, world.config, actor, { project: 'claimed', name: 'again.test' })
    const claim = await world.db.domain.findFirstOrThrow({ where: { name: 'again.test' } })
    const observed = { nameservers: [], txt: [] }
    await markVerified(world.db, world.config, claim.id, { method: 'txt', observed })
    await until(async () => world.edge.snapshot!.settled() === null)
    expectNeutral(await looksOver(world, 'again.test'))
    await putBack(world, id)
    await until(async () => (await world.get('again.test', '/')).text.includes('Nothing deployed yet'))
  })
})

describe('a project that is taken down', () => {
  test('answers the neutral page at every host; what is deployed, promoted or attached then does too', async () => {
    const project = await projectId('shop')
    const { id } = await takeDown(world, { project })
    await expectBarred(hosts())
    expect((await world.get('other.localhost', '/')).text).toBe('the other site')
    const next = await world.deploy('shop', { 'index.html': 'the next shop' }, { production: true })
    const old = await world.db.deployment.findFirstOrThrow({ where: { projectId: project }, orderBy: { id: 'asc' } })
    await promoteDeployment(world.db, world.urls, world.actor, { id: old.id })
    await world.attach('shop', 'late.test')
    await until(() => world.edge.snapshot!.find(next.host) && world.edge.snapshot!.find('late.test'))
    await expectBarred([...hosts(), next.host, 'late.test'])
    await putBack(world, id)
    await expectServed()
    expect((await world.get(next.host, '/')).text).toBe('the next shop')
    await answersWith(world, 'late.test', 200)
  })

  test('does not escape by a new project of its name, nor by another project for its domain', async () => {
    await world.site('escape', { 'index.html': 'bad' })
    await world.attach('escape', 'escape.test')
    await served('escape.test')
    const { id } = await takeDown(world, { project: await projectId('escape') })
    await expectBarred(['escape.localhost', 'escape.test'])
    await deleteDomain(world.db, world.config, world.actor, { path: 'escape.test', ...nothing })
    await world.attach('other', 'escape.test')
    await deleteProject(world.db, world.urls, world.actor, { key: 'escape', ...nothing })
    await world.newProject('escape')
    const again = await world.deploy('escape', { 'index.html': 'bad again' }, { production: true })
    await answersWith(world, again.host, 200)
    await expectBarred(['escape.localhost', 'escape.test'])
    await putBack(world, id)
    await answersWith(world, 'escape.localhost', 200)
    await answersWith(world, 'escape.test', 200)
  })
})

describe('what was open before', () => {
  /** A connection that stays open; returns the first line of each answer. */
  async function keepAlive() {
    const socket = connect({ port: world.port, host: '127.0.0.1' })
    socket.setEncoding('latin1')
    await once(socket, 'connect')
    return {
      socket,
      async ask(host: string): Promise<string> {
        socket.write(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
        let text = ''
        while (!/\r\n\r\n[\s\S]*(shop|Berth<)/.test(text)) text += (await once(socket, 'data'))[0]
        return text.split('\r\n', 1)[0]!
      },
    }
  }

  test('a connection of HTTP/1.1 and a session of HTTP/2 get the neutral page from then on, and the site again', async () => {
    const connection = await keepAlive()
    const session = await world.session('shop.test')
    const get = async () => (await ask(session, { ':path': '/', ':authority': 'shop.test' })).status
    for (let n = 0; n < 3; n++) expect(await connection.ask('shop.localhost')).toBe('HTTP/1.1 200 OK')
    expect(await get()).toBe(200)
    await suspend(world, world.actor.accountId, true)
    await until(() => world.edge.snapshot!.find('shop.localhost')?.barred)
    for (let n = 0; n < 3; n++) expect(await connection.ask('shop.localhost')).toBe('HTTP/1.1 403 Forbidden')
    expect(await get()).toBe(403)
    await suspend(world, world.actor.accountId, false)
    await until(() => world.edge.snapshot!.find('shop.localhost')?.target)
    expect(await connection.ask('shop.localhost')).toBe('HTTP/1.1 200 OK')
    expect(await get()).toBe(200)
    connection.socket.destroy()
    session.close()
  })

  /** Reads the beginning; `rest` reads on and tells how much came in all until it was over. */
  async function download(stream: Readable): Promise<{ rest(): Promise<number> }> {
    let octets = 0
    const over = new Promise<number>((resolve) => stream.on('close', () => resolve(octets)))
    stream.on('error', () => {})
    await new Promise<void>((resolve) => {
      stream.on('data', (chunk) => {
        octets += chunk.length
        resolve()
      })
    })
    stream.pause()
    return {
      rest() {
        stream.resume()
        return over
      },
    }
  }

  test('a download that is under way is cut off, by HTTP/1.1 and HTTP/2', async () => {
    const socket = connect({ port: world.port, host: '127.0.0.1' })
    socket.write('GET /large.bin HTTP/1.1\r\nHost: shop.localhost\r\n\r\n')
    const session = await world.session('shop.test')
    const stream = session.request({ ':path': '/large.bin', ':authority': 'shop.test' })
    const downloads = await Promise.all([download(socket), download(stream)])
    const { id } = await takeDown(world, { project: await projectId('shop') })
    await until(() => world.edge.snapshot!.find('shop.localhost')?.barred)
    for (const { rest } of downloads) expect(await rest()).toBeLessThan(files['large.bin'].length)
    session.destroy()
    await putBack(world, id)
    await expectServed()
  })
})

describe('another edge', () => {
  const edges: Edge[] = []
  const heard: Notifications[] = []
  async function open(notifications: Notifications): Promise<Edge> {
    const { config, db, artifacts } = world
    const edge = createEdge({ config, db, notifications, artifacts, log })
    await edge.listen()
    edges.push(edge)
    return edge
  }
  afterAll(async () => {
    for (const edge of edges) await edge.close()
    for (const one of heard) await one.close()
  })

  test('hears of it too, one that starts later knows it, and one that heard nothing knows it after the outage', async () => {
    const own = await listen(world.databaseUrl, log)
    heard.push(own)
    const second = await open(own)
    // Nothing is heard here until the connection is back.
    let back = () => {}
    const deaf: Notifications = {
      ...own,
      connected: true,
      on(topic, listener) {
        if (topic === 'reconnected') back = listener as () => void
        return () => {}
      },
    }
    const third = await open(deaf)
    const takedown = await takeDown(world, { host: 'shop.test' })
    await until(() => second.snapshot!.find('shop.test')?.barred)
    const { account } = await createAccount(world.db, 'elsewhere')
    const actor = { ...world.actor, accountId: account.id }
    await createProject(world.db, world.urls, actor, { region: 'r', input: { name: 'elsewhere', repo: 'a/b' } })
    await suspend(world, account.id, true)
    await until(() => second.snapshot!.find('elsewhere.localhost')?.barred)
    const late = await open(own)
    expect(late.snapshot!.find('shop.test')!.barred).toBe(true)
    expect(late.snapshot!.find('elsewhere.localhost')!.barred).toBe(true)
    expect(third.snapshot!.find('shop.test')!.barred).toBe(false)
    back()
    await until(() => third.snapshot!.find('shop.test')?.barred && third.snapshot!.find('elsewhere.localhost')?.barred)
    await putBack(world, takedown.id)
    await suspend(world, account.id, false)
    back()
    for (const { snapshot } of edges) {
      await until(() => !snapshot!.find('shop.test')!.barred && !snapshot!.find('elsewhere.localhost')!.barred)
    }
  })
})
