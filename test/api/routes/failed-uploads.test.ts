// Archives and uploads that fail for what is not in them: nothing of them is kept, and whoever can hear it is told why.
import { randomBytes } from 'node:crypto'
import { open } from 'node:fs/promises'
import { type ClientRequest, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { startApi, type TestApi } from '../../helpers/api.ts'
import { until } from '../../helpers/until.ts'
import { archive, file, octets, sha256, tar, uploadsOf } from '../../helpers/uploads.ts'

let api: TestApi
let uploads: ReturnType<typeof uploadsOf>
let port: number

beforeAll(async () => {
  api = await startApi()
  uploads = uploadsOf(api)
  await api.listen()
  port = (api.app.server.address() as AddressInfo).port
  await api.call('POST', '/projects', { body: { name: 'site', framework: 'static' } })
})

afterAll(async () => {
  // Bodies that never end would be waited for.
  api.app.server.closeAllConnections()
  await api.stop()
})

it('an archive whose deployment is refused is not stored', async () => {
  const content = randomBytes(400)
  for (const limit of ['buildsQueued', 'buildMinutesPerMonth']) {
    const { token } = await uploads.limited({ [limit]: 0 })
    const answer = await api.call('POST', '/deployments/archive?project=site', {
      body: archive([file('a', content)]),
      headers: tar,
      token,
    })
    expect(answer.body, answer.text).toMatchObject({ code: 'quota_exceeded', limit })
    expect(await uploads.isStored(sha256(content))).toBe(false)
  }
  // Trying it has left nothing behind, and takes none of the room.
  const { token } = await uploads.limited({ buildsQueued: 1 })
  const made = await api.call('POST', '/deployments/archive?project=site', {
    body: archive([file('a', content)]),
    headers: tar,
    token,
  })
  expect(made.status, made.text).toBe(201)
  const { body } = await api.call('GET', '/deployments', { token })
  expect(body.deployments.map(({ id }: { id: string }) => id)).toEqual([made.body.id])
  expect(await uploads.leftOnDisk()).toEqual([])
})

it('an archive that the disk has no room for is refused before it comes', async () => {
  const { token } = await uploads.limited({ sourceBytes: 8e15 })
  const headers = { ...tar, 'content-length': '7000000000000000' }
  const answer = await api.call('POST', '/deployments/archive?project=site', {
    body: archive([file('a', randomBytes(9))]),
    headers,
    token,
  })
  expect(answer.body).toMatchObject({ status: 503, code: 'overloaded' })
})

function send(method: string, path: string, headers: Record<string, string | number>): ClientRequest {
  const authorization = `Bearer ${api.token}`
  const sent = request({ port, method, path: `/api${path}`, headers: { authorization, ...headers } })
  sent.on('error', () => {})
  return sent
}

it('an archive whose client goes away is no fault of the database', async () => {
  const logged: string[] = []
  const note = (...entry: unknown[]) => void logged.push(String(entry.at(-1)))
  const spies = (['error', 'warn'] as const).map((level) => vi.spyOn(api.deps.log, level).mockImplementation(note))
  const sent = send('POST', '/deployments/archive?project=site', { ...tar, 'content-length': 1_000_000 })
  sent.write(randomBytes(300_000))
  await until(async () => (await uploads.leftOnDisk()).length > 0)
  sent.destroy()
  await until(async () => (await uploads.leftOnDisk()).length === 0)
  await new Promise((resolve) => setTimeout(resolve, 200))
  for (const spy of spies) spy.mockRestore()
  expect(logged).toEqual([])
})

it('a disk that becomes full while content comes is told as such', async () => {
  const handle = await open('/dev/null', 'a')
  const full = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' })
  const write = vi.spyOn(Object.getPrototypeOf(handle), 'write').mockRejectedValue(full)
  try {
    const headers = { ...octets, 'content-length': 3_000_000 }
    const sent = send('PUT', `/uploads/${sha256(randomBytes(9))}`, headers)
    const answered = Promise.withResolvers<{ status?: number; retry?: string; body: string }>()
    sent.on('error', (error) => answered.resolve({ body: error.message }))
    sent.on('response', async (answer) => {
      answered.resolve({ status: answer.statusCode!, retry: answer.headers['retry-after']!, body: await text(answer) })
    })
    sent.write(randomBytes(600_000))
    const { status, retry, body } = await answered.promise
    sent.destroy()
    expect({ status, retry, body }).toMatchObject({
      status: 503,
      retry: '10',
      body: expect.stringContaining('"overloaded"'),
    })
  } finally {
    write.mockRestore()
    await handle.close()
  }
  expect(await uploads.leftOnDisk()).toEqual([])
})
