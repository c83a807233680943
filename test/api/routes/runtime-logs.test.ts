import { afterAll, beforeAll, expect, test } from 'vitest'
import { appendLines } from '../../../src/services/deployments/logs/deployment-logs.ts'
import { deleteOldRuntimeLines } from '../../../src/services/deployments/logs/runtime-logs.ts'
import { sharedApi, type TestApi } from '../../helpers/api.ts'
import { createRepository } from '../../helpers/repository.ts'
import { readStream } from '../../helpers/stream.ts'

let api: TestApi
let id: string
const old = new Date(Date.now() - 25 * 60 * 60_000)
beforeAll(async () => {
  api = await sharedApi()
  await createRepository(`${api.config.dataDir}/repos`, 'acme/site')
  await api.call('POST', '/projects', { body: { name: 'site', framework: 'node', repo: 'acme/site' } })
  id = (await api.call('POST', '/deployments', { body: { project: 'site' } })).body.id
  const line = (text: string, more: object = {}) =>
    ({ stream: 'stdout', step: 'run', text, at: new Date(), instance: '0', ...more }) as never
  await appendLines(api.db, id, [
    line('built', { step: 'build', instance: undefined, at: old }),
    line('yesterday', { at: old }),
    line('one'),
    line('two', { instance: '1' }),
    line('three', { stream: 'stderr' }),
  ])
})
afterAll(() => api.stop())

const texts = async (query = '') => {
  const { status, body } = await api.call('GET', `/deployments/${id}/runtime-logs${query}`)
  expect(status).toBe(200)
  return body.lines.map(({ text }: { text: string }) => text)
}

test('what servers print is listed by page, time, instance and stream, without the lines of the build', async () => {
  expect(await texts()).toEqual(['yesterday', 'one', 'two', 'three'])
  expect(await texts('?instance=1')).toEqual(['two'])
  expect(await texts('?stream=stderr')).toEqual(['three'])
  expect(await texts(`?since=${new Date(Date.now() - 3_600_000).toISOString()}`)).toEqual(['one', 'two', 'three'])
  const first = (await api.call('GET', `/deployments/${id}/runtime-logs?limit=3`)).body
  expect(first.hasMore).toBe(true)
  expect(await texts(`?cursor=${first.nextCursor}`)).toEqual(['three'])
  for (const query of ['since=soon', 'instance=x', 'stream=system', 'limit=0', 'cursor=x']) {
    expect((await api.call('GET', `/deployments/${id}/runtime-logs?${query}`)).status).toBeGreaterThanOrEqual(400)
  }
})

test('nobody else reads them', async () => {
  const { token } = await api.newAccount()
  expect((await api.call('GET', `/deployments/${id}/runtime-logs`, { token })).status).toBe(404)
})

test('they come live, after the line that the reader has, and only those that were asked for', async () => {
  const stream = await readStream(api, `/deployments/${id}/runtime-logs?stream=stdout`, { 'last-event-id': '3' })
  expect(await stream.next()).toMatchObject({ id: '4', data: { text: 'two', instance: '1' } })
  const later = { step: 'run', at: new Date(), instance: '0' }
  await appendLines(api.db, id, [
    { ...later, stream: 'stderr', text: 'not this' },
    { ...later, stream: 'stdout', text: 'four' },
  ])
  expect(await stream.next()).toMatchObject({ id: '7', data: { text: 'four', seq: 7 } })
  stream.close()
  await api.db.logLine.deleteMany({ where: { deploymentId: id, seq: { gt: 5 } } })
})

test('they are forgotten after a day, and those of builds are not', async () => {
  expect(await deleteOldRuntimeLines(api.db)).toBe(1)
  expect(await texts()).toEqual(['one', 'two', 'three'])
  expect(await api.db.logLine.count({ where: { deploymentId: id, step: 'build' } })).toBe(1)
})
