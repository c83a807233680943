import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createAccount } from '../../../src/services/accounts/accounts.ts'
import { startApi, type TestApi } from '../../helpers/api.ts'

let api: TestApi
let operator: string
beforeAll(async () => {
  api = await startApi({ QUOTA_PROJECTS: '4', QUOTA_DOMAINS: '4' })
  operator = (await createAccount(api.db, 'the desk', ['operator'])).token
})
afterAll(() => api.stop())

describe('an operator', () => {
  const limits = (accountId: string, body?: object) =>
    api.call(body ? 'PATCH' : 'GET', `/operator/accounts/${accountId}/limits`, { token: operator, body })

  test('raises, lowers and restores the limits of one account', async () => {
    const { accountId, token } = await api.newAccount()
    const project = (name: string) =>
      api.call('POST', '/projects', { token, body: { name, framework: 'static', repo: 'demo/hello' } })
    expect((await limits(accountId)).body).toMatchObject({ limits: { projects: 4 }, changed: {} })
    expect((await limits(accountId, { projects: 5 })).body).toMatchObject({
      limits: { projects: 5, domains: 4 },
      changed: { projects: 5 },
    })
    expect((await api.call('GET', '/account', { token })).body.limits.projects).toBe(5)
    const answers = await Promise.all(Array.from({ length: 8 }, (_, i) => project(`p${i}`)))
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(5)
    const restored = await limits(accountId, { projects: null })
    expect(restored.body).toMatchObject({ limits: { projects: 4 }, changed: {}, usage: { projects: 5 } })
    expect(await project('late')).toMatchObject({ status: 403, body: { limit: 'projects', used: 5, max: 4 } })
    const events = await api.db.event.findMany({ where: { accountId, type: 'account.limits_changed' } })
    expect(events).toHaveLength(2)
  })

  test('is refused what is not a limit', async () => {
    const { accountId } = await api.newAccount()
    for (const body of [
      {},
      { projects: -1 },
      { projects: 1.5 },
      { projects: '9' },
      { ships: 1 },
      { projects: 2 ** 60 },
    ])
      expect((await limits(accountId, body)).status, JSON.stringify(body)).toBe(422)
    expect((await limits('acc_none')).status).toBe(404)
    expect((await limits('acc_none', { projects: 1 })).status).toBe(404)
  })

  test('alone reads and changes limits', async () => {
    const { accountId, token } = await api.newAccount()
    for (const [method, body] of [['GET'], ['PATCH', { projects: 1 }]] as const) {
      const answer = await api.call(method, `/operator/accounts/${accountId}/limits`, { token, body })
      expect(answer).toMatchObject({ status: 403, body: { code: 'insufficient_scope' } })
    }
  })
})
