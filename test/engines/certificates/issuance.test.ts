import { createPrivateKey, X509Certificate } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { placeOf } from '../../../src/platform/secrets/secrets.ts'
import { until } from '../../helpers/until.ts'
import { addressesIn, askUdp } from '../nameserver/packets.ts'
import { isPebbleInstalled } from './pebble.ts'
import { served, startWorld, type World } from './world.ts'

const installed = isPebbleInstalled()

let world: World
beforeAll(async () => {
  // One nonce in five is refused all the way through.
  if (!installed) return
  world = await startWorld({ nonceReject: 20, blocked: ['blocked.com'] }, { BASE_URL: 'https://api.eu.berth.example' })
})
afterAll(() => world?.stop())

/** The authority asks both nameservers, and must find the change at either. */
const leadsElsewhere = (name: string, wanted: boolean) =>
  until(async () => {
    const answers = await Promise.all(world.ports.map((port) => askUdp(port, name, 'A')))
    return answers.every(({ answer }) => addressesIn(answer).includes('127.0.0.2') === wanted)
  })

describe.skipIf(!installed)('a verified domain gets a certificate', () => {
  test('by http-01 where its nameservers are elsewhere', async () => {
    const id = await world.verified('plain.com')
    await world.run(id)
    expect(world.pebble.log()).toMatch('w/ HTTP: http://plain.com')
    const domain = await world.domain('plain.com')
    expect(domain).toMatchObject({ ssl: 'ACTIVE', certificate: { sans: ['plain.com'], lastError: null } })
    expect(domain.certificate.issuer).toMatch(/^CN=Pebble Intermediate CA/)
    const { row, leaf } = (await served(world, id))!
    const key = createPrivateKey(world.deps.vault.open(row.key, placeOf.certificate(row.id)).toString())
    expect(leaf.checkPrivateKey(key)).toBe(true)
    expect(key.asymmetricKeyDetails?.namedCurve).toBe('prime256v1')
    const root = new X509Certificate(await world.pebble.root())
    const [, intermediate] = row.chain
      .split(/(?<=-----END CERTIFICATE-----\n)/)
      .map((pem) => pem.trim())
      .filter(Boolean)
    expect(leaf.verify(new X509Certificate(intermediate!).publicKey)).toBe(true)
    expect(new X509Certificate(intermediate!).verify(root.publicKey)).toBe(true)
  })

  test('by dns-01 where its zone is here, for the www that the nameservers answer too', async () => {
    const id = await world.verified('hosted.com', 'nameservers')
    await world.run(id)
    expect(world.pebble.log()).not.toMatch('w/ HTTP: http://hosted.com')
    expect(await world.domain('hosted.com')).toMatchObject({
      ssl: 'ACTIVE',
      certificate: { sans: ['hosted.com', 'www.hosted.com'] },
    })
    expect(await world.db.acmeChallenge.count()).toBe(0)
    expect(await world.db.acmeOrder.count()).toBe(0)
  })

  test('for a wildcard, and for a host below a zone that is here', async () => {
    const wildcard = await world.verified('*.hosted.com', 'nameservers')
    const below = await world.verified('app.hosted.com', 'txt')
    await Promise.all([world.run(wildcard), world.run(below)])
    expect(await world.domain('*.hosted.com')).toMatchObject({ ssl: 'ACTIVE', certificate: { sans: ['*.hosted.com'] } })
    expect(await world.domain('app.hosted.com')).toMatchObject({ ssl: 'ACTIVE' })
  })

  test('that it shares with its www where both are attached, in place of the one it had', async () => {
    const host = await world.verified('pair.com')
    await world.run(host)
    const before = (await served(world, host))!.row.id
    const orders = world.pebble.orders()
    const www = await world.verified('www.pair.com')
    await world.run(www)
    expect(world.pebble.orders() - orders).toBe(1)
    const [one, other] = [await served(world, host), await served(world, www)]
    expect(one!.row.id).toBe(other!.row.id)
    expect(one!.row.names).toEqual(['pair.com', 'www.pair.com'])
    expect(await world.db.certificate.findUnique({ where: { id: before } })).toBeNull()
    const { body } = await world.call('GET', '/events?subject=pair.com&order=asc')
    const types = body.events.map(({ type }: { type: string }) => type).filter((type: string) => /ssl/.test(type))
    expect(types).toEqual(['domain.ssl.active', 'domain.ssl.renewed'])
  })

  test('even when its www points elsewhere: that one alone is in ERROR, with the reason', async () => {
    const host = await world.verified('half.com')
    const www = await world.verified('www.half.com')
    await world.record('www.half.com', 'A', '@', '127.0.0.2')
    await leadsElsewhere('www.half.com', true)
    // Its own job fails in an order for both, for which the other is not to blame.
    await world.run(www)
    expect(await world.domain('half.com')).toMatchObject({ ssl: 'ISSUING', certificate: null })
    await world.run(host)
    expect(await world.domain('half.com')).toMatchObject({ ssl: 'ACTIVE', certificate: { sans: ['half.com'] } })
    const failed = await world.domain('www.half.com')
    expect(failed).toMatchObject({ ssl: 'ERROR', certificate: { issuer: null } })
    expect(failed.certificate.lastError).toMatch(/127\.0\.0\.2.*refused.*\(connection\)/)
    expect((await served(world, www))?.row).toBeUndefined()
  })
})

describe.skipIf(!installed)('the platform gets certificates of its own', () => {
  const run = async (purpose: 'deployments' | 'api') => {
    const { issue } = await world.engine()
    await issue.run({ platform: purpose }, { attempt: 1, signal: new AbortController().signal, async requireHeld() {} })
    return world.db.platformCertificate.findUnique({ where: { purpose }, include: { inService: true } })
  }

  test('for the domain of its deployments and everything directly below it', async () => {
    const made = await run('deployments')
    expect(made).toMatchObject({ failures: 0, lastError: null, inService: { accountId: null } })
    expect(made!.inService!.names).toEqual(['berth.example', '*.berth.example'])
    expect(await world.db.acmeChallenge.count()).toBe(0)
  })

  test('for the API where that is a name of ours that the first does not cover', async () => {
    expect((await run('api'))?.inService?.names).toEqual(['api.eu.berth.example'])
  })
})

describe.skipIf(!installed)('a domain that the authority will not certify', () => {
  test('because it points elsewhere is in ERROR with the authority’s reason, and ACTIVE once that is mended', async () => {
    const id = await world.verified('elsewhere.com')
    const { body: record } = await world.record('elsewhere.com', 'A', '@', '127.0.0.2')
    await leadsElsewhere('elsewhere.com', true)
    await world.run(id)
    const failed = await world.domain('elsewhere.com')
    expect(failed.ssl).toBe('ERROR')
    expect(failed.certificate.lastError).toMatch(/refused/)
    expect(Date.parse(failed.certificate.nextAttemptAt)).toBeGreaterThan(Date.now() - 1_000)
    const [job] = await world.db.job.findMany({ where: { kind: 'issue', key: id } })
    expect(job).toMatchObject({ failedAt: null })
    await world.call('DELETE', `/dns/elsewhere.com/records/${record.id}`)
    await leadsElsewhere('elsewhere.com', false)
    await world.db.domain.update({ where: { id }, data: { certificateFailures: 0 } })
    await world.run(id)
    expect(await world.domain('elsewhere.com')).toMatchObject({ ssl: 'ACTIVE', certificate: { lastError: null } })
    const { body } = await world.call('GET', '/events?subject=elsewhere.com&order=asc')
    const types = body.events.map(({ type }: { type: string }) => type).filter((type: string) => /ssl/.test(type))
    expect(types).toEqual(['domain.ssl.error', 'domain.ssl.active'])
  })

  test('because of its name is not tried again soon', async () => {
    const id = await world.verified('blocked.com')
    await world.run(id)
    const { ssl, certificate } = await world.domain('blocked.com')
    expect(ssl).toBe('ERROR')
    expect(certificate.lastError).toMatch(/\(rejectedIdentifier\)$/)
    expect(Date.parse(certificate.nextAttemptAt) - Date.now()).toBeGreaterThan(3_500_000)
    const orders = world.pebble.orders()
    await world.run(id)
    expect(world.pebble.orders()).toBe(orders)
  })

  test('because it is not verified any more is left alone', async () => {
    const id = await world.verified('lost.com')
    await world.db.domain.update({ where: { id }, data: { verified: false } })
    const orders = world.pebble.orders()
    await world.run(id)
    expect(world.pebble.orders()).toBe(orders)
    expect(await world.domain('lost.com')).toMatchObject({ ssl: 'PENDING' })
  })
})
