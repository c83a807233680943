import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { promisify } from 'node:util'
import { afterEach, describe, expect, test } from 'vitest'
import { createCookies } from '../../../src/engines/nameserver/answer/cookies.ts'
import { createRateLimit } from '../../../src/engines/nameserver/answer/rate-limit.ts'
import { until } from '../../helpers/until.ts'
import { askTcp, askUdp, question, readMessage, receiveFrom, sendUdp } from './packets.ts'
import { isMissing } from './transfer/world.ts'
import { type Served, serveZones } from './zones.ts'

let served: Served | null = null
afterEach(async () => {
  await served?.stop()
  served = null
})

const withCookie = (cookie: Buffer) => ({ edns: 1232, options: [[10, cookie]] as [number, Buffer][] })

test('a client cookie comes back with a server cookie after it, and that one is taken again', async () => {
  served = await serveZones()
  served.put('example.com', 'www A 192.0.2.1')
  const client = randomBytes(8)
  const first = (await askUdp(served.port, 'www.example.com', 'A', withCookie(client))).opt!.options.get(10)!
  expect(first).toHaveLength(24)
  expect(first.subarray(0, 8)).toEqual(client)
  const again = (await askUdp(served.port, 'www.example.com', 'A', withCookie(first))).opt!.options.get(10)!
  expect(again).toEqual(first)
})

test('a cookie is valid for its address, its client and its time', () => {
  let nowMs = 1_800_000_000_000
  const cookies = createCookies(randomBytes(32), () => nowMs)
  const { cookie, valid } = cookies.check(randomBytes(8), '192.0.2.1')
  expect(valid).toBe(false)
  expect(cookies.check(cookie, '192.0.2.1').valid).toBe(true)
  expect(cookies.check(cookie, '192.0.2.2').valid).toBe(false)
  for (let at = 0; at < 24; at++) {
    const forged = Buffer.from(cookie)
    forged[at]! ^= 1
    expect(cookies.check(forged, '192.0.2.1').valid).toBe(false)
  }
  expect(createCookies().check(cookie, '192.0.2.1').valid).toBe(false)
  nowMs += 2_000_000
  const renewed = cookies.check(cookie, '192.0.2.1')
  expect(renewed.valid).toBe(true)
  expect(renewed.cookie).not.toEqual(cookie)
  nowMs += 2_000_000
  expect(cookies.check(cookie, '192.0.2.1').valid).toBe(false)
  nowMs -= 5_000_000
  expect(cookies.check(cookie, '192.0.2.1').valid).toBe(false)
})

test('the rate limit lets equal answers to one network through so often, and slips every second of the rest', () => {
  let nowMs = 0
  const limit = createRateLimit({ perSecond: 5, slip: 2, now: () => nowMs })
  const take = (address: string, count: number, tuple = 1) =>
    Array.from({ length: count }, () => limit.judge(address, tuple))
  expect(take('192.0.2.1', 3)).toEqual(['send', 'send', 'send'])
  expect(take('192.0.2.200', 6)).toEqual(['send', 'send', 'drop', 'truncate', 'drop', 'truncate'])
  expect(take('192.0.3.1', 1)).toEqual(['send'])
  expect(take('192.0.2.1', 1, 2)).toEqual(['send'])
  expect(take('::ffff:192.0.2.9', 1)).toEqual(['drop'])
  nowMs += 400
  expect(take('192.0.2.1', 3)).toEqual(['send', 'send', 'truncate'])
  expect(take('2001:db8:0:ff::1', 5)).toEqual(Array(5).fill('send'))
  expect(take('2001:db8:0:12::2', 1)).toEqual(['drop'])
  expect(take('2001:db8:0:112::2', 1)).toEqual(['send'])
  expect(take('127.0.0.1', 50)).toEqual(Array(50).fill('send'))
})

test('random names below a wildcard, or missing ones, count as one answer', async () => {
  served = await serveZones({ rateLimit: { perSecond: 5, slip: 1, isExempt: () => false, now: () => 0 } })
  served.put('wild.com', '* A 192.0.2.1')
  served.put('none.com', 'x A 192.0.2.1')
  for (const zone of ['wild.com', 'none.com', 'refused.net']) {
    const truncated: boolean[] = []
    for (let index = 0; index < 7; index++) {
      truncated.push((await askUdp(served.port, `r${index}.${zone}`, 'A')).tc)
    }
    expect(truncated).toEqual([false, false, false, false, false, true, true])
  }
})

/** How many of so many questions are answered; the others are seen to be dropped. */
async function answered({ port, metric }: Served, packet: () => Buffer, count: number): Promise<number> {
  const dropped = () => metric('berth_nameserver_dropped_total', { reason: 'rate' })
  const before = await dropped()
  let answers = 0
  const socket = receiveFrom(port, () => answers++)
  for (let sent = 0; sent < count; sent++) socket.send(packet(), port, '127.0.0.1')
  await until(async () => answers + (await dropped()) - before === count)
  socket.close()
  return answers
}

test('who shows a cookie of ours, or comes by TCP, is not limited', async () => {
  served = await serveZones({ rateLimit: { perSecond: 1, slip: 0, isExempt: () => false, now: () => 0 } })
  served.put('example.com', 'www A 192.0.2.1')
  const ask = question('www.example.com', 'A')
  const first = await sendUdp(served.port, question('www.example.com', 'A', withCookie(randomBytes(8))))
  const cookie = readMessage(first!).opt!.options.get(10)!
  expect(await answered(served, () => ask, 1)).toBe(0)
  for (let index = 0; index < 5; index++) {
    expect((await askUdp(served.port, 'www.example.com', 'A', withCookie(cookie))).answer).toHaveLength(1)
    expect((await askTcp(served.port, 'www.example.com', 'A')).answer).toHaveLength(1)
  }
})

// The first answer uses the limit up.
async function serveLimited(perSecond = 1): Promise<Served> {
  served = await serveZones({ rateLimit: { perSecond, slip: 0, isExempt: () => false, now: () => 0 } })
  served.put('example.com', 'www A 192.0.2.1')
  for (let used = 0; used < perSecond; used++) await askUdp(served.port, 'www.example.com', 'A')
  return served
}

test('over the limit, a client with cookies gets BADCOOKIE and the cookie that its next query is answered with', async () => {
  const { port, metric } = await serveLimited(3)
  const other = (await askUdp(port, 'none.example.com', 'A', withCookie(randomBytes(8)))).opt!.options.get(10)!
  const client = randomBytes(8)
  const stale = Buffer.concat([client, other.subarray(8)])
  for (const sent of [client, stale]) {
    const packet = question('www.example.com', 'A', {
      edns: 1232,
      options: [
        [10, sent],
        [3, Buffer.alloc(0)],
      ],
    })
    const octets = (await sendUdp(port, packet))!
    const answer = readMessage(octets)
    expect(answer).toMatchObject({ rcode: 'BADCOOKIE', tc: false, answer: [] })
    expect(octets.length).toBeLessThanOrEqual(packet.length + 16)
    const cookie = answer.opt!.options.get(10)!
    expect(cookie.subarray(0, 8)).toEqual(client)
    expect((await askUdp(port, 'www.example.com', 'A', withCookie(cookie))).answer).toHaveLength(1)
  }
  expect(await metric('berth_nameserver_queries_total', { rcode: 'BADCOOKIE' })).toBe(2)
})

test('client cookies from a forged address provoke only so many BADCOOKIE answers', async () => {
  const limited = await serveLimited(3)
  expect(await answered(limited, () => question('www.example.com', 'A', withCookie(randomBytes(8))), 10)).toBe(3)
})

test('below the limit nobody has to have a cookie', async () => {
  served = await serveZones({ rateLimit: { perSecond: 5, isExempt: () => false, now: () => 0 } })
  served.put('example.com', 'www A 192.0.2.1')
  expect((await askUdp(served.port, 'www.example.com', 'A', withCookie(randomBytes(8)))).rcode).toBe('NOERROR')
  expect((await askUdp(served.port, 'www.example.com', 'A', withCookie(randomBytes(24)))).rcode).toBe('NOERROR')
})

const run = promisify(execFile)
describe.each([
  ['dig', ['+cookie', '+tries=1', '+time=5', '+comments']],
  ['kdig', ['+cookie', '+retry=0', '+time=5']],
])('%s', (program, args) => {
  test.skipIf(isMissing(program))('retries after BADCOOKIE and has its answer', async () => {
    const { port, metric } = await serveLimited()
    const { stdout } = await run(program, ['@127.0.0.1', '-p', `${port}`, 'www.example.com', 'A', ...args])
    expect(stdout).toMatch(/www\.example\.com\.\s+300\s+IN\s+A\s+192\.0\.2\.1/)
    expect(await metric('berth_nameserver_queries_total', { rcode: 'BADCOOKIE' })).toBe(1)
  })
})

test('refusals of forged notices go out only so often over UDP, while what is signed rightly is never held back', async () => {
  let genuine = false
  served = await serveZones({
    rateLimit: { perSecond: 3, slip: 0, isExempt: () => false, now: () => 0 },
    transfers: {
      async handle({ message, send, refuse }) {
        const answer = Buffer.from(message)
        answer[2]! |= 0x80
        answer[3] = 9
        await (genuine ? send(answer) : refuse(answer))
      },
    },
  })
  const { port } = served
  const notice = () => question('example.com', 'SOA', { opcode: 4 })
  expect(await answered(served, notice, 10)).toBe(3)
  expect((await askTcp(port, 'example.com', 'SOA', { opcode: 4 })).rcode).toBe('9')
  genuine = true
  expect(await answered(served, notice, 10)).toBe(10)
})
