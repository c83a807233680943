import { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { connect } from 'node:net'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { frame, rcodeOf, unframe } from '../../src/dns/packet/message.ts'
import { rcodes } from '../../src/dns/packet/numbers.ts'
import { readBoundary } from '../../src/sandbox/network/addresses.ts'
import { addressesIn, readQuestion } from '../../src/sandbox/network/packets.ts'
import { lookupPublic, openResolver } from '../../src/sandbox/network/resolver.ts'
import { readServers } from '../../src/sandbox/network/upstream.ts'
import { until } from '../helpers/until.ts'
import { answerPacket, questionPacket, startUpstream } from './dns.ts'
import { cleanUp, directory } from './sandboxes.ts'

const boundary = readBoundary(['198.51.100.77'])
const NO_SUCH_NAME = 3
const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})
afterAll(cleanUp)

async function upstream(answers: Parameters<typeof startUpstream>[0]) {
  const started = await startUpstream(answers)
  closers.push(started.close)
  return started
}

async function resolver(...servers: string[]): Promise<string> {
  const path = join(await directory(), 'resolver.sock')
  const { close } = await openResolver(path, readServers(servers), boundary)
  closers.push(close)
  return path
}

/** Undefined when the connection ends without an answer. */
async function exchange(path: string, packet: Buffer): Promise<Buffer | undefined> {
  const socket = connect(path)
  socket.on('error', () => {})
  socket.write(frame(packet))
  let received = Buffer.alloc(0)
  for await (const chunk of socket) {
    received = Buffer.concat([received, chunk])
    if (unframe(received)) break
  }
  return unframe(received)
}

async function addresses(path: string, name: string): Promise<string[] | number> {
  const packet = questionPacket(name, 1, { id: 21 })
  const answer = (await exchange(path, packet))!
  expect(answer.readUInt16BE(0)).toBe(21)
  return rcodeOf(answer) === 0 ? addressesIn(answer, readQuestion(packet) as never) : rcodeOf(answer)
}

describe('the resolver of a sandbox', () => {
  test('hands out public addresses, and none where one is private or the platform’s', async () => {
    const names: Record<string, string[]> = {
      'public.example': ['203.0.113.1', '203.0.113.2'],
      'private.example': ['10.0.0.1'],
      'mixed.example': ['203.0.113.1', '127.0.0.1'],
      'platform.example': ['198.51.100.77'],
    }
    const server = await upstream((name) => names[name.toLowerCase()] ?? NO_SUCH_NAME)
    const path = await resolver(server.address)
    expect(await addresses(path, 'Public.example')).toEqual(names['public.example'])
    for (const name of ['private.example', 'mixed.example', 'platform.example'])
      expect(await addresses(path, name)).toEqual([])
    expect(await addresses(path, 'absent.example')).toBe(NO_SUCH_NAME)
    const { length } = server.asked
    expect((await exchange(path, questionPacket('public.example', 28)))!.readUInt16BE(6)).toBe(0)
    expect(rcodeOf((await exchange(path, questionPacket('public.example', 255)))!)).toBe(rcodes.REFUSED)
    expect(server.asked).toHaveLength(length)
    expect(await lookupPublic('public.example', readServers([server.address]), boundary)).toHaveLength(2)
    expect(await lookupPublic('mixed.example', readServers([server.address]), boundary)).toEqual([])
  })

  test('gives nothing private to a name that changes its address', async () => {
    let asked = 0
    const server = await upstream(() => [asked++ === 0 ? '203.0.113.1' : '127.0.0.1'])
    const path = await resolver(server.address)
    expect(await addresses(path, 'rebinding.example')).toEqual(['203.0.113.1'])
    expect(await addresses(path, 'rebinding.example')).toEqual([])
  })

  test('takes a long answer over TCP', async () => {
    const many = Array.from({ length: 200 }, (_, index) => `203.0.113.${index}`)
    expect(await addresses(await resolver((await upstream(() => many)).address), 'many.example')).toEqual(many)
  })

  test('asks the next server when one is silent, gone or unable, and fails when all are', async () => {
    const silent = await upstream(() => undefined)
    const gone = await startUpstream(() => NO_SUCH_NAME)
    gone.close()
    const unable = await upstream(() => rcodes.SERVFAIL)
    const good = await upstream(() => ['203.0.113.1'])
    const path = await resolver(gone.address, unable.address, silent.address, good.address)
    expect(await addresses(path, 'a.example')).toEqual(['203.0.113.1'])
    expect(unable.asked).toEqual(['a.example'])
    expect(await addresses(await resolver(gone.address), 'a.example')).toBe(rcodes.SERVFAIL)
    expect(await addresses(await resolver(unable.address), 'a.example')).toBe(rcodes.SERVFAIL)
  })

  test('believes no answer to another question, and no noise', async () => {
    const forged = answerPacket(questionPacket('b.example', 1), [])
    const liar = await upstream((name) => (name === 'a.example' ? forged : randomBytes(40)))
    const good = await upstream(() => ['203.0.113.1'])
    const path = await resolver(liar.address, good.address)
    expect(await Promise.all([addresses(path, 'a.example'), addresses(path, 'c.example')])).toEqual([
      ['203.0.113.1'],
      ['203.0.113.1'],
    ])
  })

  test('ends the connection of a client that sends noise, and serves the others meanwhile', async () => {
    const server = await upstream(() => ['203.0.113.1'])
    const path = await resolver(server.address)
    const halves = Array.from({ length: 20 }, () => connect(path).on('error', () => {}))
    for (const half of halves) half.write(Buffer.from([255, 255, 1]))
    await Promise.all(Array.from({ length: 20 }, (_, length) => exchange(path, randomBytes(length))))
    expect(await addresses(path, 'a.example')).toEqual(['203.0.113.1'])
    for (const half of halves) half.destroy()
  })

  test('answers at once when too many questions are under way', async () => {
    const silent = await upstream(() => undefined)
    const path = await resolver(silent.address)
    const held = Array.from({ length: 64 }, () => connect(path).on('error', () => {}))
    // One behind the other, so that their places are held for longer than this takes.
    for (const [index, socket] of held.entries()) {
      for (let count = 0; count < 10; count++) socket.write(frame(questionPacket(`slow${index}.example`, 1)))
    }
    await until(() => new Set(silent.asked).size === 64)
    expect(await addresses(path, 'late.example')).toBe(rcodes.SERVFAIL)
    // Nobody was asked, so nobody was waited for.
    expect(silent.asked).not.toContain('late.example')
    for (const socket of held) socket.destroy()
  })
})
