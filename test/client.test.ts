// The tour of the five capabilities, with a client generated from openapi.yaml.
import createClient from 'openapi-fetch'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { paths } from '../sdk/src/generated/api.ts'
import { sharedApi, type TestApi } from './helpers/api.ts'

let api: TestApi
let client: ReturnType<typeof createClient<paths>>
beforeAll(async () => {
  api = await sharedApi()
  await api.newProject('hello')
  const address = await api.listen()
  client = createClient<paths>({ baseUrl: `${address}/api`, headers: { authorization: `Bearer ${api.token}` } })
})
afterAll(() => api.stop())

test('a generated client lists projects', async () => {
  const { data, error } = await client.GET('/projects', { params: { query: { framework: ['static'] } } })
  expect(error).toBeUndefined()
  expect(data!.projects.map((project) => project.name)).toEqual(['hello'])
})

test('a generated client deploys and follows the deployment', async () => {
  const made = await client.POST('/deployments', { body: { project: 'hello', ref: 'main', production: true } })
  expect(made.data).toMatchObject({ state: 'BUILDING', ref: 'main', production: true })
  const { id } = made.data!
  const read = await client.GET('/deployments/{id}', { params: { path: { id }, query: { wait: 1 } } })
  expect(read.data).toEqual({ ...made.data, queuePosition: 1 })
  const canceled = await client.POST('/deployments/{id}/cancel', { params: { path: { id } } })
  expect(canceled.data!.state).toBe('CANCELED')
})

test('a generated client attaches a domain and manages its records', async () => {
  const domain = await client.POST('/domains', { body: { project: 'hello', name: 'Hello.Example.test' } })
  expect(domain.data).toMatchObject({ name: 'hello.example.test', verified: false, ssl: 'PENDING' })
  const path = { domain: 'hello.example.test' }
  const body = { type: 'MX', name: '@', value: '10 mail.example.com', ttl: 3600 } as const
  const record = await client.POST('/dns/{domain}/records', { params: { path }, body })
  expect(record.data).toMatchObject(body)
  const list = await client.GET('/dns/{domain}/records', { params: { path } })
  expect(list.data!.records).toEqual([record.data])
})

test('a generated client opens a ticket and talks about it', async () => {
  const ticket = await client.POST('/tickets', {
    body: { subject: 'Help', priority: 'normal', message: 'It is broken.' },
  })
  expect(ticket.data).toMatchObject({ subject: 'Help', status: 'OPEN', priority: 'normal' })
  const params = { path: { id: ticket.data!.id } }
  const reply = await client.POST('/tickets/{id}/messages', { params, body: { message: 'Still.' } })
  expect(reply.data).toMatchObject({ author: 'customer', message: 'Still.' })
})

test('a generated client gets problems with the fields they name', async () => {
  const { error, response } = await client.POST('/deployments', { body: { project: 'hello', ref: 'nope' } })
  expect(response.status).toBe(422)
  expect(error).toMatchObject({ code: 'ref_not_found', errors: [{ pointer: '#/ref' }] })
})
