import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { quotaNames, quotas } from '../../../src/schemas/quotas.ts'
import { createAccount } from '../../../src/services/accounts/accounts.ts'
import { finishDeployment } from '../../../src/services/deployments/states.ts'
import { type Answer, startApi, type TestApi } from '../../helpers/api.ts'

let api: TestApi
let operator: string
beforeAll(async () => {
  api = await startApi({
    QUOTA_PROJECTS: '4',
    QUOTA_DOMAINS: '4',
    QUOTA_TOKENS: '5',
    QUOTA_OPEN_TICKETS: '3',
    QUOTA_DNS_KEYS: '3',
    QUOTA_WEBHOOKS: '3',
    QUOTA_VARIABLES: '3',
    QUOTA_DEPLOY_HOOKS: '3',
    QUOTA_RECORDS_PER_ZONE: '6',
    QUOTA_STORED_BYTES: '1000',
    QUOTA_CLAIMS_PER_MONTH: '12',
    QUOTA_MESSAGES_PER_MONTH: '10',
    QUOTA_SERVER_INSTANCES: '5',
  })
  operator = (await createAccount(api.db, 'the desk', ['operator'])).token
})
afterAll(() => api.stop())

const usageOf = async (token: string) => (await api.call('GET', '/account', { token })).body.usage

async function tenant() {
  const { accountId, token } = await api.newAccount()
  const post = (path: string, body: object) => api.call('POST', path, { token, body })
  const project = (name: string) => post('/projects', { name, framework: 'static', repo: 'demo/hello' })
  return { accountId, token, post, project }
}

const refused = (answer: Answer, limit: string, max: number) =>
  expect(answer).toMatchObject({ status: 403, body: { code: 'quota_exceeded', limit, used: max, max } })

describe('an account', () => {
  const cases: {
    limit: string
    counter: string
    max: number
    held: number
    make: (of: Awaited<ReturnType<typeof tenant>>, name: string) => Promise<Answer>
    free: (of: Awaited<ReturnType<typeof tenant>>, made: Answer) => Promise<Answer>
  }[] = [
    {
      limit: 'projects',
      counter: 'projects',
      max: 4,
      held: 1,
      make: ({ project }, name) => project(name),
      free: ({ token }, made) => api.call('DELETE', `/projects/${made.body.id}`, { token }),
    },
    {
      limit: 'domains',
      counter: 'domains',
      max: 4,
      held: 0,
      make: ({ post, accountId }, name) =>
        post('/domains', { name: `${name}.${accountId.slice(4)}.com`, project: 'site' }),
      free: ({ token }, made) => api.call('DELETE', `/domains/${made.body.name}`, { token }),
    },
    {
      limit: 'tokens',
      counter: 'tokens',
      max: 5,
      held: 1,
      make: ({ post }, name) => post('/tokens', { name }),
      free: ({ token }, made) => api.call('DELETE', `/tokens/${made.body.id}`, { token }),
    },
    {
      limit: 'openTickets',
      counter: 'openTickets',
      max: 3,
      held: 0,
      make: ({ post }, name) => post('/tickets', { subject: name, message: 'please' }),
      free: ({ token }, made) => api.call('PATCH', `/tickets/${made.body.id}`, { token, body: { status: 'CLOSED' } }),
    },
    {
      limit: 'dnsKeys',
      counter: 'dnsKeys',
      max: 3,
      held: 0,
      async make({ post, accountId }, name) {
        const domain = `keys.${accountId.slice(4)}.com`
        await post('/domains', { name: domain, project: 'site' })
        return post(`/dns/${domain}/keys`, { name })
      },
      free: ({ token }, { body }) => api.call('DELETE', `/dns/${body.domain}/keys/${body.id}`, { token }),
    },
    {
      limit: 'webhooks',
      counter: 'webhooks',
      max: 3,
      held: 0,
      make: ({ post }) => post('/webhooks', { url: 'https://hooks.example.com/', events: ['*'] }),
      free: ({ token }, made) => api.call('DELETE', `/webhooks/${made.body.id}`, { token }),
    },
  ]

  test.each(cases)('has $max of $limit, even when they are asked for all at once', async (quota) => {
    const { limit, counter, max, held, make, free } = quota
    const [mine, other] = [await tenant(), await tenant()]
    for (const one of [mine, other]) await one.project('site')
    const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => make(mine, `n${i}`)))
    const made = answers.filter((answer) => answer.status === 201)
    expect(made).toHaveLength(max - held)
    for (const answer of answers.filter((answer) => answer.status !== 201)) refused(answer, limit, max)
    expect((await usageOf(mine.token))[counter]).toBe(max)
    // Another account has its own.
    expect((await make(other, 'n0')).status).toBe(201)
    // What is freed can be used again, once.
    expect((await free(mine, made[0]!)).status).toBeLessThan(300)
    expect((await make(mine, 'again')).status).toBe(201)
    refused(await make(mine, 'more'), limit, max)
  })

  test('is told what is used up and what to do', async () => {
    const { project, token } = await tenant()
    for (let i = 0; i < 4; i++) await project(`p${i}`)
    const { body } = await project('p5')
    expect(body.detail).toBe(
      'Projects: 4 of 4 used. Delete one that is not needed, or ask the operator for a higher limit.',
    )
    expect((await usageOf(token)).projects).toBe(4)
  })

  test('has so many variables in a project, and may change those it has', async () => {
    const { project, token } = await tenant()
    await project('site')
    const put = (key: string) => api.call('PUT', `/projects/site/env/${key}`, { token, body: { value: 'x' } })
    const answers = await Promise.all(Array.from({ length: 8 }, (_, i) => put(`KEY_${i}`)))
    expect(answers.filter(({ status }) => status < 300)).toHaveLength(3)
    for (const answer of answers.filter(({ status }) => status >= 300)) refused(answer, 'variables', 3)
    const [kept] = (await api.call('GET', '/projects/site/env', { token })).body.env
    expect((await put(kept.key)).status).toBeLessThan(300)
  })

  test('has so many deploy hooks in a project', async () => {
    const { project, post } = await tenant()
    await project('site')
    const answers = await Promise.all(
      Array.from({ length: 6 }, () => post('/projects/site/deploy-hooks', { name: 'cms' })),
    )
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(3)
    for (const answer of answers.filter(({ status }) => status >= 300)) refused(answer, 'deployHooks', 3)
  })

  test('has so many records in a zone, by single writes, batches and imports', async () => {
    const { project, post, token, accountId } = await tenant()
    await project('site')
    const zone = `${accountId.slice(4)}.org`
    await post('/domains', { name: zone, project: 'site' })
    const record = (i: number) => ({ type: 'A', name: `h${i}`, value: '192.0.2.1', ttl: 300 })
    const answers = await Promise.all(Array.from({ length: 12 }, (_, i) => post(`/dns/${zone}/records`, record(i))))
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(6)
    for (const answer of answers.filter(({ status }) => status !== 201)) refused(answer, 'recordsPerZone', 6)
    refused(await post(`/dns/${zone}/records/batch`, { create: [record(20)] }), 'recordsPerZone', 6)
    const text = Array.from({ length: 7 }, (_, i) => `i${i} 300 IN A 192.0.2.9`).join('\n')
    const headers = { 'content-type': 'text/dns', 'if-match': '*' }
    const imported = await api.call('PUT', `/dns/${zone}/zone`, { token, body: text, headers })
    expect(imported).toMatchObject({ status: 403, body: { limit: 'recordsPerZone', max: 6 } })
    expect((await usageOf(token)).records).toBe(6)
    const [first] = (await api.call('GET', `/dns/${zone}/records`, { token })).body.records
    await api.call('DELETE', `/dns/${zone}/records/${first.id}`, { token })
    expect((await usageOf(token)).records).toBe(5)
    expect((await post(`/dns/${zone}/records`, record(30))).status).toBe(201)
    await api.call('DELETE', `/domains/${zone}`, { token })
    expect((await usageOf(token)).records).toBe(0)
  })

  test('stores so many bytes', async () => {
    const { token, accountId } = await tenant()
    await api.newProject('bytes', { token })
    const ids: string[] = []
    for (let i = 0; i < 3; i++) {
      const { body } = await api.call('POST', '/deployments', { token, body: { project: 'bytes' } })
      ids.push(body.id)
    }
    const finish = (id: string, storedBytes: number) =>
      finishDeployment(api.db, api.deps.urls, id, { to: 'READY', storedBytes, by: 'system' })
    await finish(ids[0]!, 600)
    await expect(finish(ids[1]!, 600)).rejects.toThrow()
    await finish(ids[1]!, 400)
    expect(await usageOf(token)).toMatchObject({ deployments: 3, storedBytes: 1000 })
    await api.db.deployment.deleteMany({ where: { accountId, id: ids[0]! } })
    expect(await usageOf(token)).toMatchObject({ deployments: 2, storedBytes: 400 })
  })

  test('whose ticket support resolved may reply, even with all open tickets used', async () => {
    const { post, token } = await tenant()
    const first = await post('/tickets', { subject: 'one', message: 'please' })
    for (const status of ['IN_PROGRESS', 'RESOLVED'])
      await api.call('PATCH', `/operator/tickets/${first.body.id}`, { token: operator, body: { status } })
    expect((await usageOf(token)).openTickets).toBe(0)
    for (let i = 0; i < 3; i++)
      expect((await post('/tickets', { subject: 'more', message: 'please' })).status).toBe(201)
    expect((await post(`/tickets/${first.body.id}/messages`, { message: 'not yet' })).status).toBe(201)
    expect((await usageOf(token)).openTickets).toBe(4)
    const more = await post('/tickets', { subject: 'four', message: 'please' })
    expect(more).toMatchObject({ status: 403, body: { limit: 'openTickets', used: 4, max: 3 } })
  })
})

test('every quota is documented with what it bounds and what to do', () => {
  for (const name of quotaNames) {
    expect(quotas[name].max, name).toBeGreaterThan(0)
    expect(quotas[name].what, name).toMatch(/^[A-Z]/)
    expect(quotas[name].cure, name).toMatch(/^[A-Z].*[^.]$/)
  }
})

describe('what is kept for ever', () => {
  test('names that an account adds and deletes are counted for a month, those that it had before are not', async () => {
    const { token, project, post, accountId } = await tenant()
    await project('site')
    const add = (name: string) => post('/domains', { name: `${name}.${accountId.slice(4)}.com`, project: 'site' })
    const remove = (name: string) => api.call('DELETE', `/domains/${name}.${accountId.slice(4)}.com`, { token })
    for (let n = 0; n < 12; n++) {
      expect((await add(`n${n}`)).status).toBe(201)
      await remove(`n${n}`)
    }
    const answers = await Promise.all(['x', 'y', 'z'].map(add))
    for (const answer of answers) refused(answer, 'claimsPerMonth', 12)
    expect((await add('n3')).status).toBe(201)
    expect((await add('*.n3')).status).toBe(201)
    expect(await usageOf(token)).toMatchObject({ domains: 2, claimsPerMonth: 12 })
    // Last month does not count.
    const month = new Date('2020-01-01')
    await api.db.monthUsage.updateMany({ where: { accountId, name: 'claimsPerMonth' }, data: { month } })
    expect((await add('x')).status).toBe(201)
    expect(await usageOf(token)).toMatchObject({ claimsPerMonth: 1 })
  })

  test('messages to support are counted for a month, those of support are not', async () => {
    const { token, post } = await tenant()
    for (let n = 0; n < 5; n++) {
      const { body } = await post('/tickets', { subject: 'again', message: 'please' })
      expect((await post(`/tickets/${body.id}/messages`, { message: 'please' })).status).toBe(201)
      if (n < 4) await api.call('PATCH', `/tickets/${body.id}`, { token, body: { status: 'CLOSED' } })
    }
    const [open] = (await api.call('GET', '/tickets?status=OPEN', { token })).body.tickets
    refused(await post(`/tickets/${open.id}/messages`, { message: 'please' }), 'messagesPerMonth', 10)
    refused(await post('/tickets', { subject: 'more', message: 'please' }), 'messagesPerMonth', 10)
    const path = `/operator/tickets/${open.id}/messages`
    expect((await api.call('POST', path, { token: operator, body: { message: 'no' } })).status).toBe(201)
    expect(await usageOf(token)).toMatchObject({ messagesPerMonth: 10, openTickets: 1 })
  })
})

test('the servers of all projects together have as many instances as the account may have', async () => {
  const { token, post } = await tenant()
  const make = (name: string, framework: string, instances: number) =>
    post('/projects', { name, framework, repo: 'demo/hello', settings: { instances } })
  const change = (name: string, body: object) => api.call('PATCH', `/projects/${name}`, { token, body })
  expect((await make('one', 'node', 3)).status).toBe(201)
  expect((await make('site', 'static', 10)).status).toBe(201)
  const over = { status: 403, body: { code: 'quota_exceeded', limit: 'serverInstances', used: 3, max: 5 } }
  expect(await make('two', 'node', 3)).toMatchObject(over)
  expect(await change('site', { framework: 'node' })).toMatchObject(over)
  expect(await change('one', { settings: { instances: 6 } })).toMatchObject(over)
  expect((await make('two', 'node', 2)).status).toBe(201)
  expect((await change('two', { settings: { instances: 1 } })).status).toBe(200)
  expect(await usageOf(token)).toMatchObject({ serverInstances: 4 })
  expect((await api.call('DELETE', '/projects/one', { token })).status).toBe(204)
  expect((await change('two', { framework: 'static' })).status).toBe(200)
  expect(await usageOf(token)).toMatchObject({ serverInstances: 0 })
})
