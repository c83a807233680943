// Event streams over real sockets: whoever asks for one gets an answer, an end, and no more than the token still allows.
import { type AddressInfo, connect } from 'node:net'
import { afterAll, describe, expect, test, vi } from 'vitest'
import type { Operation } from '../access/operations.ts'
import { rawRequest } from '../access/raw.ts'
import type { Target } from '../access/world.ts'
import { until } from '../helpers/until.ts'
import { startHarness } from './harness.ts'

// All tokens are looked at now and then; without that clock, a stream ends because of what was told.
vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
const maxInFlight = 30
const { api, operations, fresh, freshForAll } = await startHarness({ MAX_IN_FLIGHT: String(maxInFlight) })
afterAll(async () => {
  await api.stop()
  vi.useRealTimers()
})
await api.listen()
const { port } = api.app.server.address() as AddressInfo

const reads = operations.filter(({ method }) => method === 'GET')
const targets = await freshForAll(reads)
const accept = { accept: 'text/event-stream' }
const headOnly = (text: string) => text.includes('\r\n\r\n')

async function open({ path, owner }: Target, headers: Record<string, string> = {}) {
  const authorization = `Bearer ${owner.token}`
  return rawRequest(port, 'GET', `/api${path}`, { authorization, ...accept, ...headers }, headOnly)
}

/** Those that answer with a stream when one is asked for. */
const streams: Operation[] = []
for (const operation of reads) {
  const { headers } = await open(targets.get(operation)!)
  if (headers['content-type']?.startsWith('text/event-stream')) streams.push(operation)
}

test('there are streams', () => expect(streams.length).toBeGreaterThan(1))

describe.each(reads)('$name', (operation) => {
  test('answers whatever Last-Event-ID says, at once or as a stream', async () => {
    for (const last of [
      '',
      'x',
      '-1',
      '0',
      '1e309',
      '9'.repeat(400),
      '\xff',
      'evt_01jcqk8c4p0gs16q0td7w3y2',
      '__proto__',
    ]) {
      const { status, headers } = await open(targets.get(operation)!, { 'last-event-id': last })
      expect([200, 400], last).toContain(status)
      if (status === 400) expect(headers['content-type']).toMatch(/^application\/problem\+json/)
    }
  })

  test('ends its answer to HEAD, also when a stream is asked for', async () => {
    const { path, owner } = targets.get(operation)!
    const answer = await rawRequest(port, 'HEAD', `/api${path}`, { authorization: `Bearer ${owner.token}`, ...accept })
    expect(answer).toMatchObject({ status: 200, text: '' })
  })
})

/** Opens a stream and tells when the server ends it. */
function follow(path: string, token: string): Promise<{ ended: Promise<void>; close(): void }> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.write(
        `GET /api${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\naccept: text/event-stream\r\n\r\n`,
      )
    })
    // A chunked answer ends with an empty chunk, though the connection may stay.
    const ended = new Promise<void>((done) => {
      let text = ''
      socket.on('data', (chunk) => {
        text += chunk.toString('latin1')
        if (text.endsWith('\r\n0\r\n\r\n')) done()
      })
      socket.on('close', () => done())
      socket.on('error', () => done())
    })
    socket.once('data', () => resolve({ ended, close: () => socket.destroy() }))
  })
}

describe.each(streams)('a stream of $name', (operation) => {
  // Canceling is what takes a deployment that is still building, so its log has not ended yet.
  const cancel = operations.find(({ id }) => id === 'cancelDeployment')!

  async function followed() {
    const { owner, values } = await fresh(cancel)
    const made = await api.call('POST', '/tokens', { token: owner.token, body: { name: 'reader' } })
    const path = operation.template.replace(/\{id\}/, values[0]!)
    return { owner, reader: made.body, stream: await follow(path, made.body.token) }
  }

  test('ends when its token is revoked', async () => {
    const { owner, reader, stream } = await followed()
    expect((await api.call('DELETE', `/tokens/${reader.id}`, { token: owner.token })).status).toBe(204)
    await stream.ended
    stream.close()
  })

  test('ends when its account is suspended', async () => {
    const { owner, stream } = await followed()
    const staff = (await fresh(cancel)).owner
    const body = { suspended: true }
    const change = await api.call('PATCH', `/operator/accounts/${owner.accountId}`, { token: staff.token, body })
    expect(change.status).toBe(200)
    await stream.ended
    stream.close()
  })

  test('gives its place back when the reader goes away', async () => {
    const { owner, values } = await fresh(cancel)
    const path = operation.template.replace(/\{id\}/, values[0]!)
    for (let n = 0; n < maxInFlight * 2; n++) {
      const stream = await follow(path, owner.token)
      stream.close()
    }
    await until(async () => (await api.call('GET', '/account', { token: owner.token })).status === 200)
  })
})
