// Secondaries of customers: a key of a zone transfers that zone alone, and they are told of its changes.
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createAllowance } from '../../../../src/engines/nameserver/transfer/allowance.ts'
import { freePort } from '../../../helpers/ports.ts'
import { until } from '../../../helpers/until.ts'
import { impatient, isMissing, type Peer, run, startPeer, startWorld, type World } from './world.ts'

type Key = { id: string; keyName: string; secret: string }

let world: World
beforeAll(async () => {
  world = await startWorld([], impatient)
  for (const name of ['mine.dev', 'other.dev']) await world.addDomain(name)
  await world.addRecord('mine.dev', 'A', 'a', '192.0.2.1')
  await world.settled('mine.dev')
})
afterAll(() => world.stop())

async function newKey(body: object, zone = 'mine.dev', token = world.api.token): Promise<Key> {
  const made = await world.api.call('POST', `/dns/${zone}/keys`, { body, token })
  expect(made.status, made.text).toBe(201)
  return made.body
}
const argument = ({ keyName, secret }: Key) => `hmac-sha256:${keyName}:${secret}`

describe.skipIf(isMissing('kdig'))('the key of a zone', () => {
  const axfr = (key: Key, zone: string) => world.kdig('-y', argument(key), 'AXFR', zone)

  test('transfers that zone, whole or what changed, and its use is noted', async () => {
    const key = await newKey({ name: 'one', purpose: 'transfer' })
    await until(async () => (await axfr(key, 'mine.dev')).includes('a.mine.dev.'))
    const serial = await world.settled('mine.dev')
    await world.addRecord('mine.dev', 'A', 'b', '192.0.2.2')
    await world.settled('mine.dev')
    const changes = await world.kdig('-y', argument(key), `IXFR=${serial}`, 'mine.dev')
    expect(changes).toContain('192.0.2.2')
    expect(changes).not.toMatch(/a\.mine\.dev|WARNING/)
  })

  test('transfers nothing else: no other zone, no catalog, nothing by an update key or one that is deleted', async () => {
    const key = await newKey({ name: 'two', purpose: 'transfer' })
    await until(async () => (await axfr(key, 'mine.dev')).includes('a.mine.dev.'))
    for (const zone of ['other.dev', 'nowhere.dev', 'catalog.berth.invalid', 'localhost']) {
      const answer = await axfr(key, zone)
      expect(answer, zone).toMatch(/NOTAUTH/)
      expect(answer).not.toMatch(/IN\s+SOA/)
    }
    const updates = await newKey({ name: 'three' })
    await until(async () => /NOTAUTH/.test(await axfr(updates, 'mine.dev')))
    expect(await axfr(updates, 'mine.dev')).not.toContain('192.0.2.1')
    const wrong = { ...key, secret: updates.secret }
    expect(await axfr(wrong, 'mine.dev')).toMatch(/BADSIG|NOTAUTH/)
    expect((await world.api.call('DELETE', `/dns/mine.dev/keys/${key.id}`)).status).toBe(204)
    await until(async () => !(await axfr(key, 'mine.dev')).includes('192.0.2.1'))
  })

  test('of a claim that is not served transfers nothing of the zone that is', async () => {
    const other = await world.api.newAccount()
    await world.api.call('POST', '/projects', { body: { name: 'site', repo: 'test/site' }, token: other.token })
    await world.api.db.domain.updateMany({ where: { name: 'mine.dev' }, data: { verified: true } })
    // As it was claimed before the other proved it.
    const { id: projectId } = await world.api.db.project.findFirstOrThrow({ where: { accountId: other.accountId } })
    const now = new Date()
    const claim = {
      projectId,
      accountId: other.accountId,
      name: 'mine.dev',
      txtValue: 'x',
      createdAt: now,
      updatedAt: now,
    }
    await world.api.db.domain.create({ data: { id: 'dom_000000000000000000000009', ...claim } })
    const key = await newKey({ name: 'thief', purpose: 'transfer' }, 'mine.dev', other.token)
    const honest = await newKey({ name: 'honest', purpose: 'transfer' })
    await until(async () => (await axfr(honest, 'mine.dev')).includes('192.0.2.1'))
    expect(await axfr(key, 'mine.dev')).not.toContain('192.0.2.1')
  })
})

test('addresses that are told must be addresses, few, and of a key that transfers', async () => {
  const refused = async (body: object) => (await world.api.call('POST', '/dns/mine.dev/keys', { body })).body
  for (const notify of [['ns.example.net'], ['192.0.2.1:0'], ['192.0.2.1:99999'], [''], Array(5).fill('192.0.2.1')]) {
    const { code, errors } = await refused({ name: 'bad', purpose: 'transfer', notify })
    expect([code, errors?.[0]?.pointer]).toEqual(['validation_failed', expect.stringMatching(/^#\/notify/)])
  }
  expect((await refused({ name: 'bad', notify: ['192.0.2.1'] })).errors[0].pointer).toBe('#/notify')
  const made = await newKey({ name: 'good', purpose: 'transfer', notify: ['192.0.2.53', '2001:db8::53'] }, 'other.dev')
  expect(made).toMatchObject({ notify: ['192.0.2.53:53', '[2001:db8::53]:53'] })
})

test('an account transfers so much in a minute, and the platform as much as it likes', () => {
  let seconds = 0
  const used: string[] = []
  const isAllowed = createAllowance(
    () => seconds,
    (id) => used.push(id),
  )
  const key = { id: 'key_1', accountId: 'acc_1' }
  for (let count = 0; count < 20; count++) expect(isAllowed(key, true)).toBe(true)
  expect([isAllowed(key, true), isAllowed({ ...key, id: 'key_2' }, false)]).toEqual([false, false])
  expect([isAllowed({ id: 'key_3', accountId: 'acc_2' }, true), isAllowed({}, true)]).toEqual([true, true])
  seconds = 60
  expect(isAllowed(key, true)).toBe(true)
  expect(used).toEqual(['key_1', 'key_2', 'key_3', 'key_1'])
})

describe.skipIf(isMissing('knotd', 'kdig'))('Knot of a customer', () => {
  let knot: Peer
  afterAll(() => knot?.stop())

  test('has its zone and the changes that it is told of', async () => {
    const port = await freePort()
    await world.addDomain('knot.dev')
    const key = await newKey({ name: 'knot', purpose: 'transfer', notify: [`127.0.0.1:${port}`] }, 'knot.dev')
    knot = await startPeer(
      'knotd',
      (directory) => ['-c', join(directory, 'knot.conf')],
      (directory) => ({
        'knot.conf': `
server:
    rundir: "${directory}"
    listen: 127.0.0.1@${port}
database:
    storage: "${directory}"
log:
  - target: stderr
    any: info
key:
  - id: ${key.keyName}
    algorithm: hmac-sha256
    secret: "${key.secret}"
remote:
  - id: berth
    address: 127.0.0.1@${world.port}
    key: ${key.keyName}
acl:
  - id: notify
    key: ${key.keyName}
    action: notify
zone:
  - domain: knot.dev
    storage: "${directory}"
    master: berth
    acl: notify
    zonefile-sync: -1
    zonefile-load: none
    journal-content: all
`,
      }),
    )
    const ask = (name: string) =>
      run('kdig', ['@127.0.0.1', '-p', `${port}`, '+retry=0', '+time=1', '+short', 'A', name])
    const has = (name: string, address: string) =>
      until(async () => (await ask(name)) === `${address}\n`).catch((error) => {
        throw new Error(`${error}\n${knot.output()}`)
      })
    await world.addRecord('knot.dev', 'A', 'a', '192.0.2.1')
    await has('a.knot.dev', '192.0.2.1')
    await world.addRecord('knot.dev', 'A', 'b', '192.0.2.2')
    await has('b.knot.dev', '192.0.2.2')
    expect(knot.output()).toMatch(/IXFR, incoming.*finished/)
    const status = async () => (await world.api.call('GET', '/dns/knot.dev/zone/status')).body
    await until(async () => (await status()).secondaries[0].current)
    const { serial, secondaries } = await status()
    const told = { error: null, reason: null, since: null, checkedAt: expect.any(String) }
    expect(secondaries).toEqual([{ address: `127.0.0.1:${port}`, serial, behind: 0, current: true, ...told }])
    const zones = [{ domain: 'knot.dev', names: ['a'] }]
    const narrow = await world.api.call('POST', '/tokens', { body: { name: 'narrow', scopes: ['dns:read'], zones } })
    const seen = await world.api.call('GET', '/dns/knot.dev/zone/status', { token: narrow.body.secret })
    expect([seen.status, seen.body.secondaries]).toEqual([200, []])
    await knot.stop()
    await world.addRecord('knot.dev', 'A', 'c', '192.0.2.3')
    await until(async () => /timeout|refused/.test((await status()).secondaries[0].error))
    expect((await status()).secondaries[0]).toMatchObject({ current: false, serial: null, behind: null })
    await world.api.call('DELETE', `/dns/knot.dev/keys/${key.id}`)
    expect((await status()).secondaries).toEqual([])
  })
})
