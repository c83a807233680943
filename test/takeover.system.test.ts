// A second account gets nothing of a name that belongs to another, with every engine running.
import { request } from 'node:http'
import { connect } from 'node:tls'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createIssuer, type Issuer } from '../src/engines/certificates/issuer.ts'
import { createEdge, type Edge } from '../src/engines/edge/serve/server.ts'
import { startWorker, type Worker } from '../src/jobs/worker.ts'
import { createArtifacts } from '../src/platform/artifacts/local-artifacts.ts'
import { askUdp } from './engines/nameserver/packets.ts'
import { poolOfEight, startVerificationWorld, type VerificationWorld } from './engines/verification/world.ts'
import { until } from './helpers/until.ts'

let world: VerificationWorld
let issuer: Issuer
let worker: Worker
let edge: Edge
let ports: { port: number; httpsPort: number | null }
let thief: { accountId: string; token: string }
async function start(pool?: readonly string[]): Promise<void> {
  world = await startVerificationWorld(pool)
  thief = await world.newOwner()
  const { deps } = world
  const { db, notifications, log } = deps
  const config = { ...world.config, edge: { ...world.config.edge, httpPort: 0, httpsPort: 0 } }
  issuer = await createIssuer({ ...deps, config })
  worker = startWorker(db, notifications, log, { verify: world.verify, issue: issuer.issue })
  edge = createEdge({ ...deps, config, artifacts: createArtifacts(config.dataDir) })
  ports = await edge.listen()
}
async function stop(): Promise<void> {
  await worker.stop()
  await issuer.close()
  await edge.close()
  await world.stop()
}

const isServed = (host: string) =>
  new Promise<boolean>((resolve, reject) => {
    const sent = request({ port: ports.port, headers: { host } }, (response) => {
      response.resume()
      // Redirected to HTTPS or not, the platform serves the host.
      resolve(response.headers.location !== undefined || response.statusCode === 503 || response.statusCode === 200)
    })
    sent.on('error', reject).end()
  })

const hasCertificate = (servername: string) =>
  new Promise<boolean>((resolve) => {
    const socket = connect({ port: ports.httpsPort!, host: '127.0.0.1', servername, rejectUnauthorized: false })
    socket.on('secureConnect', () => resolve(true)).on('error', () => resolve(false))
    socket.on('close', () => resolve(false))
    socket.on('secureConnect', () => socket.destroy())
  })

/** Both accounts have added the name, the thief first; then it is delegated to the owner's nameservers. */
async function delegate(name: string): Promise<void> {
  await world.newDomain(name, thief.token)
  const { nameservers } = await world.newDomain(name)
  world.internet.delegations.set(name, nameservers)
  await askForCheck(name, thief.token)
  await askForCheck(name, world.token)
  await until(async () => (await world.read(name)).ssl === 'ACTIVE')
}

/** Requests a check, and waits for it. */
async function askForCheck(name: string, token: string): Promise<void> {
  const key = await world.idOf(name, token)
  await world.call('POST', `/domains/${name}/verify`, { token })
  await until(
    async () => (await world.db.job.count({ where: { kind: 'verify', key, runAt: { lte: new Date() } } })) === 0,
  )
}

async function expectNothing(name: string): Promise<void> {
  await askForCheck(name, thief.token)
  expect(await world.read(name, thief.token)).toMatchObject({ verified: false, ssl: 'PENDING', certificate: null })
  expect(await world.db.certificate.count({ where: { accountId: thief.accountId } })).toBe(0)
}

describe('a second account neither verifies nor serves nor gets a certificate for a name that is', () => {
  beforeAll(() => start(poolOfEight))
  afterAll(stop)

  test('delegated for another', async () => {
    await delegate('mine.com')
    await expectNothing('mine.com')
    await until(() => hasCertificate('mine.com'))
    expect(await isServed('mine.com')).toBe(true)
    const owner = await world.db.domain.findFirstOrThrow({ where: { name: 'mine.com', verified: true } })
    expect(owner.accountId).toBe(world.accountId)
  })

  test('verified by another, itself or above', async () => {
    await world.call('DELETE', '/domains/mine.com', { token: thief.token })
    const { body } = await world.call('GET', '/projects', { token: thief.token })
    for (const name of ['mine.com', 'www.mine.com', '*.mine.com', 'deep.below.mine.com']) {
      const input = { project: body.projects[0].name, name }
      const refused = await world.call('POST', '/domains', { body: input, token: thief.token })
      expect(refused).toMatchObject({ status: 409, body: { code: 'domain_taken' } })
    }
  })

  test('held for another, and nobody is served there meanwhile', async () => {
    await delegate('left.com')
    expect((await world.call('DELETE', '/domains/left.com')).status).toBe(204)
    await expectNothing('left.com')
    await until(async () => !(await isServed('left.com')) && !(await hasCertificate('left.com')))
  })
})

describe('with one pair of nameservers for all, a name that a thief has added first', () => {
  beforeAll(() => start())
  afterAll(stop)

  const mail = async (name: string) => (await askUdp(world.ports[0]!, name, 'MX')).rcode

  test('is nobody’s when its owner delegates it, and the owner’s by the TXT record', async () => {
    await world.newDomain('victim.com', thief.token)
    await world.record('victim.com', 'MX', '@', '10 mail.thief.net', 300, thief.token)
    const { verification } = await world.newDomain('victim.com')
    expect(verification.reason).toContain(`add the TXT record ${verification.txt.name}`)
    world.internet.delegations.set('victim.com', world.ours)
    await askForCheck('victim.com', world.token)
    await expectNothing('victim.com')
    expect((await world.read('victim.com')).verified).toBe(false)
    expect([await isServed('victim.com'), await hasCertificate('victim.com')]).toEqual([false, false])
    await until(async () => (await mail('victim.com')) === 'REFUSED')

    const { name, value } = verification.txt
    await world.internet.addZone('victim.com', 2, [[name, 'TXT', value]])
    await askForCheck('victim.com', world.token)
    await until(async () => (await world.read('victim.com')).ssl === 'ACTIVE')
    await until(() => hasCertificate('victim.com'))
    expect(await isServed('victim.com')).toBe(true)
    // A verified domain may be delegated here; the thief's records are not served.
    world.internet.delegations.set('victim.com', world.ours)
    await askForCheck('victim.com', world.token)
    expect((await world.read('victim.com')).verification.method).toBe('nameservers')
    expect((await askUdp(world.ports[0]!, 'victim.com', 'MX')).answer).toEqual([])
    await expectNothing('victim.com')
  })

  test('or after its owner has deleted it and the 7 days are over, is nobody’s while the delegation is left', async () => {
    await world.newDomain('forgotten.com')
    world.internet.delegations.set('forgotten.com', world.ours)
    await askForCheck('forgotten.com', world.token)
    await until(async () => (await world.read('forgotten.com')).ssl === 'ACTIVE')
    await world.call('DELETE', '/domains/forgotten.com')
    await world.db.domainHold.deleteMany()
    await world.newDomain('forgotten.com', thief.token)
    await world.record('forgotten.com', 'MX', '@', '10 mail.thief.net', 300, thief.token)
    await expectNothing('forgotten.com')
    await until(async () => (await mail('forgotten.com')) === 'REFUSED')
    await until(async () => !(await isServed('forgotten.com')) && !(await hasCertificate('forgotten.com')))
  })
})
