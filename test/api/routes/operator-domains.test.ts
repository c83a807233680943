import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { markVerified } from '../../../src/services/domains/states.ts'
import { insertToken } from '../../../src/services/tokens/tokens.ts'
import { sharedApi, type TestApi } from '../../helpers/api.ts'

let api: TestApi
let operator: { id: string; token: string }
let owner: { accountId: string; token: string }
let squatter: { accountId: string; token: string }

async function newOwner() {
  const made = await api.newAccount()
  await api.call('POST', '/projects', { body: { name: 'site', repo: 'test/site' }, token: made.token })
  return made
}

beforeAll(async () => {
  api = await sharedApi()
  const { accountId } = api
  const made = await insertToken(api.db, {
    accountId,
    name: 'staff',
    scopes: ['operator'],
    projectIds: [],
    expiresAt: null,
  })
  operator = { id: made.id, token: made.secret }
  await api.newProject('site')
  owner = await newOwner()
  squatter = await newOwner()
})
afterAll(() => api.stop())

const attach = async (name: string, { token }: { token: string }) =>
  (await api.call('POST', '/domains', { body: { project: 'site', name }, token })).body
const read = async (name: string, { token }: { token: string }) =>
  (await api.call('GET', `/domains/${name}`, { token })).body
const assign = (name: string, account: string, token = operator.token) =>
  api.call('POST', `/operator/domains/${name}/assign`, { body: { account, reason: 'the registrar says so' }, token })
const eventsOf = (subject: string, { accountId }: { accountId: string }) =>
  api.db.event.findMany({ where: { subject, accountId }, orderBy: { seq: 'asc' } })
const idOf = async (name: string, { accountId }: { accountId: string }) =>
  (await api.db.domain.findFirstOrThrow({ where: { name, accountId } })).id
const verify = async (name: string, who: { accountId: string }) =>
  markVerified(api.db, api.config, await idOf(name, who), {
    method: 'nameservers',
    observed: { nameservers: [], txt: [] },
    nextCheckAt: new Date(),
  })

describe('a domain that the operator assigns', () => {
  test('takes along the wildcard that another account proved by the TXT record of the same name, for good', async () => {
    const prove = async (name: string) =>
      markVerified(api.db, api.config, await idOf(name, squatter), {
        method: 'txt',
        observed: { nameservers: [], txt: [] },
        nextCheckAt: new Date(),
      })
    for (const name of ['starred.net', '*.starred.net']) {
      await attach(name, squatter)
      await prove(name)
    }
    const { id } = await api.db.project.findFirstOrThrow({ where: { accountId: owner.accountId } })
    const claim = { name: 'starred.net', accountId: owner.accountId, projectId: id, txtValue: 'x' }
    const now = new Date()
    await api.db.domain.create({ data: { ...claim, id: 'dom_starred', createdAt: now, updatedAt: now } })
    expect((await assign('starred.net', owner.accountId)).status).toBe(200)
    expect(await read('*.starred.net', squatter)).toMatchObject({ verified: false })
    // The record may be there still.
    expect(await prove('*.starred.net')).toBe('taken')
    expect(await read('*.starred.net', squatter)).toMatchObject({ verified: false })
  })

  test('is verified for that account, and every other claim ends, each with an event', async () => {
    await attach('disputed.net', squatter)
    await attach('disputed.net', owner)
    const { status, body } = await assign('Disputed.net', owner.accountId)
    expect(status).toBe(200)
    expect(body).toMatchObject({
      name: 'disputed.net',
      verified: true,
      verification: { method: 'operator', reason: null },
      account: { id: owner.accountId },
    })
    expect(await read('disputed.net', owner)).toMatchObject({ verified: true, verification: { method: 'operator' } })
    expect(await read('disputed.net', squatter)).toMatchObject({
      verified: false,
      verification: {
        method: null,
        nextCheckAt: null,
        reason: 'The operator of this platform has assigned disputed.net to another account: the registrar says so',
      },
    })
    const [, won] = await eventsOf('disputed.net', owner)
    expect(won).toMatchObject({ type: 'domain.verified', actor: operator.id })
    const [, lost] = await eventsOf('disputed.net', squatter)
    expect(lost).toMatchObject({ type: 'domain.unverified', actor: operator.id })
    expect(JSON.stringify(lost!.data)).not.toContain(owner.accountId)
    const key = await idOf('disputed.net', owner)
    expect(await api.db.job.count({ where: { kind: 'issue', key } })).toBe(1)
  })

  test('is taken from the account that had proved it, with the names below that its nameservers proved', async () => {
    for (const name of ['stolen.net', '*.stolen.net', 'shop.stolen.net']) {
      await attach(name, squatter)
      await verify(name, squatter)
    }
    await api.db.domain.updateMany({ where: { name: 'shop.stolen.net' }, data: { method: 'txt' } })
    expect((await assign('stolen.net', owner.accountId)).status).toBe(404)
    // The owner can add it only when it is not verified; then the other proves it first.
    await api.db.domain.updateMany({ where: { name: 'stolen.net' }, data: { verified: false } })
    await attach('stolen.net', owner)
    await api.db.domain.updateMany({
      where: { name: 'stolen.net', accountId: squatter.accountId },
      data: { verified: true },
    })
    expect((await assign('stolen.net', owner.accountId)).status).toBe(200)
    const states = await Promise.all(
      ['stolen.net', '*.stolen.net', 'shop.stolen.net'].map(async (name) => (await read(name, squatter)).verified),
    )
    expect(states).toEqual([false, false, true])
    const refused = await api.call('POST', '/domains', {
      body: { project: 'site', name: 'a.stolen.net' },
      token: squatter.token,
    })
    expect(refused).toMatchObject({ status: 409, body: { code: 'domain_taken' } })
  })

  test('is no longer held for another, and assigning it again changes nothing and writes nothing', async () => {
    await attach('released.net', squatter)
    await attach('released.net', owner)
    await verify('released.net', squatter)
    await api.call('DELETE', '/domains/released.net', { token: squatter.token })
    await assign('released.net', owner.accountId)
    expect(await api.db.domainHold.count({ where: { name: 'released.net' } })).toBe(0)
    const events = await api.db.event.count()
    expect((await assign('released.net', owner.accountId)).body).toMatchObject({ verified: true })
    expect(await api.db.event.count()).toBe(events)
  })

  test('is a 404 for a name, or an account, without such a claim, and needs the scope', async () => {
    await attach('mine.net', owner)
    expect((await assign('mine.net', squatter.accountId)).status).toBe(404)
    expect((await assign('mine.net', 'acc_none')).status).toBe(404)
    expect((await assign('absent.net', owner.accountId)).status).toBe(404)
    expect(await assign('mine.net', owner.accountId, owner.token)).toMatchObject({ status: 403 })
    const nameless = await api.call('POST', '/operator/domains/mine.net/assign', {
      body: { account: owner.accountId },
      token: operator.token,
    })
    expect(nameless.body.errors).toMatchObject([{ pointer: '#/reason' }])
    expect((await read('mine.net', owner)).verified).toBe(false)
  })
})
