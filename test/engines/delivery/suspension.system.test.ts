// Webhooks of a suspended account: the notice is sent, everything else waits until the account is resumed.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createAccount } from '../../../src/services/accounts/accounts.ts'
import { createTakedown } from '../../../src/services/takedowns/takedowns.ts'
import { until } from '../../helpers/until.ts'
import { answers } from './receiver.ts'
import { type Hook, startWorld, type World } from './world.ts'

let world: World
let desk: string
beforeAll(async () => {
  world = await startWorld()
  desk = (await createAccount(world.api.db, 'the desk', ['operator'])).token
  world.work({ pollMs: 50 })
})
afterAll(() => world.stop())

const suspend = (hook: Hook, suspended: boolean) =>
  world.api.call('PATCH', `/operator/accounts/${hook.accountId}`, { token: desk, body: { suspended } })
const typesAt = (hook: Hook) => hook.receiver.received.map(({ event }) => event.type)
const waiting = (hook: Hook) => world.api.db.delivery.count({ where: { webhookId: hook.id, state: 'PENDING' } })

describe('a suspended account', () => {
  test('hears that it is suspended, and the rest when it is resumed, in order', async () => {
    const hook = await world.hook()
    await suspend(hook, true)
    await until(() => typesAt(hook).includes('account.suspended'))
    const ids = await world.emit(hook, 3)
    // Another account's event that is written later arrives: these would have arrived too.
    const other = await world.hook()
    await world.emit(other)
    await until(() => other.receiver.received.length === 1)
    expect(typesAt(hook)).toEqual(['account.suspended'])
    expect(await waiting(hook)).toBe(3)
    await suspend(hook, false)
    await until(() => hook.receiver.received.length === 5)
    expect(hook.receiver.received.slice(1, 4).map(({ event }) => event.id)).toEqual(ids)
    expect(typesAt(hook).at(-1)).toBe('account.resumed')
  })

  test('is not sent what failed before either, until it is resumed', async () => {
    const hook = await world.hook(answers(500), { events: ['ticket.*'] })
    await world.emit(hook)
    await until(async () => (await world.deliveries(hook))[0].attempts === 1)
    await suspend(hook, true)
    hook.receiver.behave(answers(204))
    await world.api.db.delivery.updateMany({ where: { webhookId: hook.id }, data: { nextAttemptAt: new Date() } })
    const held = { webhookId: hook.id, leasedBy: null }
    await until(async () => (await world.api.db.webhookSending.count({ where: { ...held, wakeAt: null } })) === 1)
    expect(hook.receiver.received).toHaveLength(1)
    await suspend(hook, false)
    await until(() => hook.receiver.received.length === 2)
  })

  test('hears of a takedown', async () => {
    const hook = await world.hook()
    const { api } = world
    const made = await api.call('POST', '/projects', { token: hook.token, body: { name: 'bad', repo: 'a/b' } })
    await suspend(hook, true)
    const actor = { accountId: 'acc_desk', tokenId: 'system', scopes: ['operator'], projectIds: null } as const
    const what = { project: made.body.id, reason: 'malware' }
    await createTakedown(api.db, api.deps.urls, actor, what)
    await until(() => typesAt(hook).includes('takedown.created'))
    const [notice] = hook.receiver.received.filter(({ event }) => event.type === 'takedown.created')
    expect(notice!.event.data).toMatchObject({ reason: 'malware', project: made.body.id })
  })
})
