import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newId } from '../../../src/platform/ids.ts'
import { type Answer, sharedApi, type TestApi } from '../../helpers/api.ts'

let api: TestApi
beforeAll(async () => {
  api = await sharedApi()
})
afterAll(() => api.stop())

async function open(body: object): Promise<Answer['body']> {
  const made = await api.call('POST', '/tickets', { body: { subject: 'Help', message: 'It broke.', ...body } })
  expect(made.status, made.text).toBe(201)
  return made.body
}

describe('what a ticket is related to', () => {
  let deploymentId: string
  let foreign: { accountId: string; token: string }
  beforeAll(async () => {
    const project = await api.newProject('related')
    const made = await api.call('POST', '/deployments', { body: { project: 'related' } })
    deploymentId = made.body.id
    foreign = await api.newAccount()
    const row = {
      accountId: api.accountId,
      projectId: project.id,
      txtValue: 'x',
      createdAt: new Date(),
      updatedAt: new Date(),
    }
    await api.db.domain.create({ data: { ...row, id: newId('dom'), name: 'shop.example.com' } })
    await api.db.domain.create({ data: { ...row, id: newId('dom'), name: 'xn--mnchen-3ya.example' } })
    await api.db.domain.create({ data: { ...row, id: newId('dom'), name: '*.wild.example' } })
  })

  test('is a deployment of the account', async () => {
    expect((await open({ related: deploymentId })).related).toBe(deploymentId)
  })

  test('is not a deployment of another account, nor one that does not exist', async () => {
    for (const [related, token] of [
      [deploymentId, foreign.token],
      ['dpl_000000000000000000000000', api.token],
    ]) {
      const { status, body } = await api.call('POST', '/tickets', {
        body: { subject: 's', message: 'm', related },
        token,
      })
      expect(status).toBe(422)
      expect(body.errors).toMatchObject([{ in: 'body', pointer: '#/related', code: 'not_found' }])
    }
  })

  test.each([
    ['shop.example.com', 'shop.example.com'],
    ['Shop.Example.COM', 'shop.example.com'],
    ['München.example', 'xn--mnchen-3ya.example'],
    ['*.wild.example', '*.wild.example'],
  ])('is an attached domain, %s, kept as %s', async (related, kept) => {
    expect((await open({ related })).related).toBe(kept)
  })

  test.each(['req_7m2k9xq4tb', 'my-own.Request_id', 'a'.repeat(128)])('is a request id: %s', async (related) => {
    expect((await open({ related })).related).toBe(related)
  })

  test.each(['two words', '*.other.example', 'zürich.example', 'a'.repeat(129), 'a/b'])(
    'is nothing else: %s',
    async (related) => {
      const { status, body } = await api.call('POST', '/tickets', { body: { subject: 's', message: 'm', related } })
      expect(status).toBe(422)
      expect(body.errors).toMatchObject([{ pointer: '#/related' }])
    },
  )
})
