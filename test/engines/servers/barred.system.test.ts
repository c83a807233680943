// Server projects of suspended accounts and of takedowns: real processes, and what was open to them.
import { connect, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { createAccount } from '../../../src/services/accounts/accounts.ts'
import { markVerified } from '../../../src/services/domains/states.ts'
import { until } from '../../helpers/until.ts'
import { type ServedPlatform, startServedPlatform } from './platform.ts'
import { processesWith } from './world.ts'

vi.setConfig({ testTimeout: 120_000 })

let platform: ServedPlatform
let desk: string
beforeAll(async () => {
  platform = await startServedPlatform({ startTimeoutMs: 20_000 })
  desk = (await createAccount(platform.api.db, 'the desk', ['operator'])).token
})
afterAll(() => platform.stop())

async function operate(method: string, path: string, body?: object) {
  const answer = await platform.api.call(method, `/operator${path}`, { token: desk, body })
  expect(answer.status, answer.text).toBeLessThan(300)
  return answer.body
}
const suspend = (suspended: boolean) =>
  operate('PATCH', `/accounts/${platform.api.accountId}`, { suspended, ...(suspended && { reason: 'abuse' }) })
const takeDown = (what: object): Promise<{ id: string }> =>
  operate('POST', '/takedowns', { ...what, reason: 'malware' })
const putBack = (id: string) => operate('DELETE', `/takedowns/${id}`)

const labelOf = (url: string) => new URL(url).hostname.split('.')[0]!
const runs = (url: string) => processesWith(`http://${labelOf(url)}.`).length > 0
const status = async (url: string) => (await platform.visit(url)).split(' ', 1)[0]
// A visit that is under way while the edge cuts what was open is cut, too.
const neutral = (url: string) =>
  until(async () => /^403 .*Not available/s.test(await platform.visit(url).catch(String)))

/** A stream of events or a WebSocket that has begun; `ended` resolves when the edge closes it. */
async function open(host: string, request: string): Promise<{ ended: Promise<void>; socket: Socket }> {
  const socket = connect({ port: platform.port, host: '127.0.0.1' })
  socket.on('error', () => {})
  socket.write(request.replace('{host}', host))
  const ended = new Promise<void>((resolve) => socket.on('close', () => resolve()))
  let text = ''
  await new Promise<void>((resolve) => {
    socket.on('data', (chunk) => {
      text += chunk
      if (text.includes('tick')) resolve()
    })
  })
  return { ended, socket }
}
const events = 'GET /events HTTP/1.1\r\nHost: {host}\r\n\r\n'
const webSocket = 'GET / HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'

async function newProject(name: string) {
  const { productionUrl } = await platform.newProject(name)
  const { id } = (await platform.api.call('GET', `/projects/${name}`)).body
  const production = await platform.deployed(name, 'talking')
  expect(production).toMatchObject({ state: 'READY', current: true })
  await until(async () => (await platform.visit(productionUrl)) === '200 talking')
  return { id, productionUrl, production }
}

describe('the servers of a suspended account', () => {
  test('are stopped with their streams and WebSockets, and production is started again by itself', async () => {
    const { productionUrl, production } = await newProject('quiet')
    const preview = await platform.deployed('quiet', 'v1', false)
    expect(await platform.visit(preview.url)).toBe('200 v1 v1')
    expect([runs(production.url), runs(preview.url)]).toEqual([true, true])
    const host = new URL(productionUrl).hostname
    const streams = [await open(host, events), await open(host, webSocket)]
    await suspend(true)
    for (const { ended } of streams) await ended
    await until(() => !runs(production.url) && !runs(preview.url))
    for (const url of [productionUrl, production.url, preview.url]) await neutral(url)
    expect(await refusedUpgrade(host)).toMatch(/^HTTP\/1\.1 403 /)
    // No request has started it again.
    expect([runs(production.url), runs(preview.url)]).toEqual([false, false])
    await suspend(false)
    await until(() => runs(production.url))
    await until(async () => (await platform.visit(productionUrl)) === '200 talking')
    await until(async () => (await platform.visit(preview.url)) === '200 v1 v1')
  })

  test('are stopped while they start, and requests that wait for one do not start it', async () => {
    const { productionUrl } = await newProject('starting')
    const slow = await platform.deployed('starting', 'slow', false)
    const preview = slow.url
    await platform.restartEdge()
    const waiting = Promise.allSettled(Array.from({ length: 5 }, () => platform.visit(preview)))
    await until(() => runs(preview))
    await suspend(true)
    for (const answer of await waiting) expect(String((answer as { value?: string }).value ?? '')).not.toContain('slow')
    await until(() => !runs(preview))
    await neutral(preview)
    await neutral(productionUrl)
    await suspend(false)
    await until(async () => (await platform.visit(preview)) === '200 slow slow')
  })
})

async function refusedUpgrade(host: string): Promise<string> {
  const socket = connect({ port: platform.port, host: '127.0.0.1' })
  socket.write(webSocket.replace('{host}', host))
  return String(Buffer.concat(await socket.toArray()))
}

describe.concurrent('the servers of a project that is taken down', () => {
  test('are stopped; what is built then is READY and not served, and is when the takedown ends', async () => {
    const { id: project, productionUrl, production } = await newProject('malware')
    const takedown = await takeDown({ project })
    await until(() => !runs(production.url))
    await neutral(productionUrl)
    const next = await platform.deployed('malware', 'v2')
    expect(next).toMatchObject({ state: 'READY', current: true })
    await neutral(next.url)
    await neutral(productionUrl)
    // It ran to be proved, and is stopped like all others.
    await until(() => !runs(next.url))
    await putBack(takedown.id)
    await until(() => runs(next.url))
    await until(async () => (await platform.visit(productionUrl)) === '200 v2 v2')
    expect(runs(production.url)).toBe(false)
    expect(await status(production.url)).toBe('200')
  })

  test('go on if only one host is taken down, but not what was open by that host', async () => {
    const { productionUrl, production } = await newProject('partly')
    const { api } = platform
    await api.call('POST', '/domains', { body: { project: 'partly', name: 'partly.test' } })
    const { id } = await api.db.domain.findFirstOrThrow({ where: { name: 'partly.test' } })
    await markVerified(api.db, api.config, id, { method: 'txt', observed: { nameservers: [], txt: [] } })
    await until(async () => (await platform.visit('http://partly.test')) === '200 talking')
    const [here, there] = [await open('partly.test', webSocket), await open(new URL(productionUrl).hostname, webSocket)]
    const stream = await open('partly.test', events)
    const takedown = await takeDown({ host: 'partly.test' })
    await here.ended
    await stream.ended
    await neutral('http://partly.test')
    expect(await platform.visit(productionUrl)).toBe('200 talking')
    expect(there.socket.destroyed).toBe(false)
    expect(runs(production.url)).toBe(true)
    there.socket.destroy()
    await putBack(takedown.id)
    await until(async () => (await platform.visit('http://partly.test')) === '200 talking')
  })
})
