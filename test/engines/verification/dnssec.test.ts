// The parent's DS records decide how far the signing of a zone is: from on by default to off, with a rollover between.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { requeueForgottenSigning } from '../../../src/services/dns/dnssec/dnssec-checks.ts'
import { type Behaviour, dsTtl } from './internet.ts'
import { createSigning, type Signing } from './signing.ts'
import { startVerificationWorld, type VerificationWorld } from './world.ts'

let world: VerificationWorld
let delegated: Signing['delegated']
let read: Signing['read']
let put: Signing['put']
let check: Signing['check']
let served: Signing['served']
let later: Signing['later']
let signed: Signing['signed']
beforeAll(async () => {
  world = await startVerificationWorld()
  ;({ delegated, read, put, check, served, later, signed } = createSigning(world))
})
afterAll(() => world.stop())

const foreignDs = `12345 8 2 ${'AB'.repeat(32)}`

const dnssecEvents = async (name: string) => (await world.events(name)).filter((type) => type.startsWith('dns.dnssec.'))
const queued = async (name: string) =>
  world.db.job.count({ where: { kind: 'dnssec', key: await world.idOf(name), failedAt: null } })

describe('a domain that is delegated here', () => {
  test('is signed by itself, and active once the parent shows its DS', async () => {
    await delegated('one.com')
    expect(await queued('one.com')).toBe(1)
    expect(await read('one.com')).toMatchObject({ enabled: true, state: 'UNSIGNED', keys: [], ds: [] })
    const signing = await check('one.com')
    expect(signing).toMatchObject({ state: 'SIGNING', ds: [{ algorithm: 13 }], parent: { ds: [], matches: false } })
    expect(signing.reason).toContain('Caches may still have unsigned answers until then')
    expect(signing.keys).toMatchObject([{ algorithm: 13, flags: 257, state: 'PUBLISHED' }])
    expect(signing.dnskey).toEqual([`257 3 13 ${signing.keys[0].publicKey}`])
    await later('one.com', 1)
    expect(await check('one.com')).toMatchObject({ state: 'SIGNING' })
    await later('one.com', 1)
    await served('one.com', 1)
    const awaiting = await check('one.com')
    expect(awaiting).toMatchObject({ state: 'AWAITING_DS', keys: [{ state: 'ANNOUNCED' }] })
    const [ds] = awaiting.ds
    expect(ds.text).toBe(`${ds.keyTag} 13 2 ${ds.digest}`)
    expect(awaiting.reason).toContain('registrar')
    world.internet.ds.set('one.com', [ds.text])
    const active = await check('one.com')
    expect(active).toMatchObject({ state: 'ACTIVE', keys: [{ state: 'ACTIVE' }] })
    expect(active.parent).toMatchObject({ ds: [ds.text], matches: true })
    world.internet.ds.delete('one.com')
    expect(await check('one.com')).toMatchObject({ state: 'AWAITING_DS', ds: [ds] })
    const types = ['signing', 'awaiting_ds', 'active', 'awaiting_ds'].map((state) => `dns.dnssec.${state}`)
    expect(await dnssecEvents('one.com')).toEqual(types)
    expect(await queued('one.com')).toBe(1)
  })

  test('stays as it is while the parent cannot be asked, or does not agree with itself', async () => {
    await signed('quiet.com')
    const [first, second, third] = world.internet.top
    const behave = first!.behave
    const failing: Behaviour = (name, type, tcp) => (type === 'DS' ? { code: 'SERVFAIL' } : behave(name, type, tcp))
    const bare: Behaviour = (name, type, tcp) => (type === 'DS' ? {} : behave(name, type, tcp))
    try {
      for (const server of [first!, second!]) server.behave = failing
      const silent = await check('quiet.com')
      expect(silent).toMatchObject({ state: 'ACTIVE', parent: { matches: true } })
      expect(silent.reason).toContain('answered for the DS records')
      third!.behave = failing
      first!.behave = bare
      second!.behave = behave
      const divided = await check('quiet.com')
      expect(divided).toMatchObject({ state: 'ACTIVE', parent: { matches: true } })
      expect(divided.reason).toContain('do not all show the same DS records')
    } finally {
      for (const server of world.internet.top) server.behave = behave
    }
  })

  test('is not signed where its owner has turned that off, before and after', async () => {
    await world.newDomain('off.com')
    expect(await put('off.com', { enabled: false })).toMatchObject({ enabled: false, state: 'UNSIGNED' })
    world.internet.delegations.set('off.com', world.ours)
    expect(await world.check('off.com')).toMatchObject({ verified: true })
    expect(await queued('off.com')).toBe(0)
    expect(await check('off.com')).toMatchObject({ enabled: false, state: 'UNSIGNED' })
  })

  test('is told of the DS of another provider, and signed once that is gone', async () => {
    world.internet.ds.set('moved.com', [foreignDs])
    await delegated('moved.com')
    const { verification } = await world.read('moved.com')
    expect(verification.reason).toContain('DS record of another DNS provider (key tag 12345)')
    const found = await check('moved.com')
    expect(found).toMatchObject({ state: 'UNSIGNED', keys: [], parent: { ds: [foreignDs], matches: false } })
    expect(found.reason).toContain('Remove it at the registrar; signing starts automatically')
    world.internet.ds.delete('moved.com')
    expect(await check('moved.com')).toMatchObject({ state: 'SIGNING' })
    expect((await world.check('moved.com')).verification.reason).toBeNull()
  })
})

describe('a domain that another provider signs too', () => {
  const base64 = 'GojIhhXUN/u4v54ZQqGSnyhWJwaubCvTmeexv7bR6edbkrSqQpF64cYbcB7wNcP+e+MAnLr+Wi9xMWyQLc8NAA=='
  const keys = [`257 3 13 ${base64}`]

  test('is signed beside the DS of that provider, which is nobody else of whom to warn', async () => {
    await delegated('both.com')
    const listed = await world.call('PUT', '/dns/both.com/dnssec/foreign-keys', { body: { keys } })
    const theirs = listed.body.keys[0].ds
    world.internet.ds.set('both.com', [theirs])
    expect(await check('both.com')).toMatchObject({ state: 'SIGNING', parent: { ds: [theirs], matches: false } })
    await later('both.com', 2)
    await served('both.com', 2)
    const awaiting = await check('both.com')
    expect(awaiting).toMatchObject({ state: 'AWAITING_DS', dnskey: [expect.stringMatching(/^257 3 13 /)] })
    expect(awaiting.reason).toContain('Keep the other provider’s DS record beside it')
    world.internet.ds.set('both.com', [theirs, awaiting.ds[0].text])
    const active = await check('both.com')
    expect(active).toMatchObject({ state: 'ACTIVE', parent: { matches: true } })
    expect(active.reason).not.toContain('match no key')
    await world.call('PUT', '/dns/both.com/dnssec/foreign-keys', { body: { keys: [] } })
    expect((await check('both.com')).reason).toContain('match no key')
  })
})

describe('a domain that is proved by a TXT record', () => {
  test('is signed only when asked', async () => {
    const made = await world.newDomain('txt.com')
    const { name, value } = made.verification.txt
    await world.internet.addZone('txt.com', 2, [[name, 'TXT', value]])
    expect(await world.check('txt.com')).toMatchObject({ verified: true, verification: { method: 'txt' } })
    expect(await queued('txt.com')).toBe(0)
    expect(await read('txt.com')).toMatchObject({ enabled: false, state: 'UNSIGNED' })
    await put('txt.com', { enabled: true, denial: 'nsec3' })
    expect(await check('txt.com')).toMatchObject({ enabled: true, state: 'SIGNING', denial: 'nsec3' })
  })
})

describe('turned off', () => {
  test('the zone stays signed until the DS is gone for its TTL', async () => {
    await signed('leave.com')
    expect(await put('leave.com', { enabled: false })).toMatchObject({ state: 'LEAVING', ds: [], enabled: false })
    const domainId = await world.idOf('leave.com')
    const cdsDelete = async () => (await world.db.domain.findUniqueOrThrow({ where: { id: domainId } })).cdsDelete
    expect(await cdsDelete()).toBe(true)
    expect((await check('leave.com')).reason).toContain('Remove the DS record')
    world.internet.ds.delete('leave.com')
    expect(await check('leave.com')).toMatchObject({ state: 'LEAVING', keys: [{ state: 'LEAVING' }] })
    await later('leave.com', dsTtl / 3_600)
    expect(await check('leave.com')).toMatchObject({ state: 'LEAVING' })
    await later('leave.com', 1)
    expect(await check('leave.com')).toMatchObject({ state: 'UNSIGNED', keys: [], nextCheckAt: null })
    expect(await cdsDelete()).toBe(false)
    expect(await dnssecEvents('leave.com')).toEqual(
      ['signing', 'awaiting_ds', 'active', 'leaving', 'unsigned'].map((state) => `dns.dnssec.${state}`),
    )
    await check('leave.com')
    expect(await read('leave.com')).toMatchObject({ state: 'UNSIGNED' })
  })

  test('without a DS it is unsigned after one look at the parent; on again meanwhile, it keeps its key', async () => {
    await delegated('short.com')
    const { keys } = await check('short.com')
    await put('short.com', { enabled: false })
    expect(await put('short.com', { enabled: true })).toMatchObject({ state: 'SIGNING', keys: [{ tag: keys[0].tag }] })
    await world.call('DELETE', '/dns/short.com/dnssec')
    expect(await check('short.com')).toMatchObject({ state: 'UNSIGNED', keys: [] })
  })
})

test('a rollover has both keys sign until the DS of the new one is known everywhere', async () => {
  const { keys: before } = await signed('roll.com')
  const asked = await world.call('POST', '/dns/roll.com/dnssec/rollover')
  expect(asked.status).toBe(202)
  expect(asked.body.keys).toMatchObject([{ tag: before[0].tag, state: 'ACTIVE' }, { state: 'PUBLISHED' }])
  expect((await world.call('POST', '/dns/roll.com/dnssec/rollover')).body.code).toBe('dnssec_not_ready')
  expect((await check('roll.com')).ds).toMatchObject([{ keyTag: before[0].tag }])
  await later('roll.com', 2)
  await served('roll.com', 2)
  const announced = await check('roll.com')
  const fresh = announced.keys[1]
  expect(announced).toMatchObject({ state: 'ACTIVE', ds: [{ keyTag: fresh.tag }] })
  expect(announced.keys).toMatchObject([{ state: 'ACTIVE' }, { state: 'ANNOUNCED' }])
  const rows = await world.db.zoneKey.findMany({ where: { domainId: await world.idOf('roll.com') } })
  expect(rows.every(({ published, signing }) => published && signing)).toBe(true)
  world.internet.ds.set('roll.com', [announced.ds[0].text])
  expect((await check('roll.com')).keys).toMatchObject([{ state: 'RETIRING' }, { state: 'ACTIVE' }])
  await later('roll.com', 1)
  expect((await check('roll.com')).keys).toHaveLength(2)
  await later('roll.com', 2)
  expect((await check('roll.com')).keys).toMatchObject([{ tag: fresh.tag, state: 'ACTIVE' }])
  const [started, named, finished] = (await dnssecEvents('roll.com')).slice(-3)
  expect([started, named, finished]).toEqual(
    ['started', 'announced', 'finished'].map((step) => `dns.dnssec.rollover_${step}`),
  )
})

test('a check that got lost is queued again', async () => {
  await signed('lost.com')
  const domainId = await world.idOf('lost.com')
  await world.db.job.deleteMany({ where: { kind: 'dnssec' } })
  await world.db.zoneSigning.updateMany({ data: { nextCheckAt: null } })
  expect(await requeueForgottenSigning(world.db)).toBe(0)
  await world.db.zoneSigning.update({ where: { domainId }, data: { nextCheckAt: new Date(0) } })
  expect(await requeueForgottenSigning(world.db)).toBe(1)
  expect(await queued('lost.com')).toBe(1)
})
