// Extended DNS errors (RFC 8914): why an answer is an error, for clients with EDNS.
import { randomBytes } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { askTcp, askUdp, type Message, type QuestionOptions, question, sendUdp } from './packets.ts'
import { isMissing, run } from './transfer/world.ts'
import { type Served, serveZones } from './zones.ts'

let served: Served | null = null
afterEach(async () => {
  await served?.stop()
  served = null
})

const code = ({ opt }: Message) => opt?.options.get(15)?.toString('hex')
const [notReady, prohibited, notAuthoritative, notSupported] = ['000e', '0012', '0014', '0015']

async function serve(nsid?: string): Promise<number> {
  served = await serveZones({ rateLimit: null, ...(nsid && { nsid }) })
  served.put('example.com', 'www A 192.0.2.1\nlate ALIAS target.example.net')
  return served.port
}

test.each<[string, string, string, QuestionOptions, string, string]>([
  ['a name that is not served here', 'www.example.net', 'A', {}, 'REFUSED', notAuthoritative],
  ['a zone transfer of a stranger', 'example.com', 'AXFR', {}, 'REFUSED', prohibited],
  ['another class', 'www.example.com', 'A', { class: 3 }, 'REFUSED', notSupported],
])('%s', async (_what, name, type, options, rcode, expected) => {
  const port = await serve()
  for (const ask of [askUdp, askTcp]) {
    const answer = await ask(port, name, type, { ...options, edns: 1232 })
    expect(answer.rcode).toBe(rcode)
    expect(code(answer)).toBe(expected)
    expect(answer.opt!.options.get(15)).toHaveLength(2)
    expect((await ask(port, name, type, options)).opt, 'without EDNS').toBeNull()
  }
})

test('an ALIAS whose addresses are not known in time is not ready', async () => {
  const port = await serve()
  const answer = await askUdp(port, 'late.example.com', 'A', { edns: 1232 })
  expect(answer.rcode).toBe('SERVFAIL')
  expect(code(answer)).toBe(notReady)
})

test('good answers, and names that do not exist, say nothing more', async () => {
  const port = await serve()
  for (const name of ['www.example.com', 'none.example.com']) {
    expect(code(await askUdp(port, name, 'A', { edns: 1232 }))).toBeUndefined()
  }
})

test('it costs six octets, and is left out where the answer would be longer than the client takes', async () => {
  const label = 'l'.repeat(63)
  const long = `${label}.${label}.${label}.${'m'.repeat(57)}.net`
  const options = { edns: 512, options: [[10, randomBytes(8)]] as [number, Buffer][] }
  const port = await serve()
  const packet = question(long, 'A', options)
  expect((await sendUdp(port, packet))!.length).toBe(packet.length + 16 + 6)
  await served!.stop()
  const withNsid = { edns: 512, options: [...options.options, [3, Buffer.alloc(0)]] as [number, Buffer][] }
  const answer = await askUdp(await serve('n'.repeat(195)), long, 'A', withNsid)
  expect(answer.size).toBeLessThanOrEqual(512)
  expect(answer.opt!.options.get(3)).toHaveLength(195)
  expect(code(answer)).toBeUndefined()
})

describe.each(['dig', 'kdig'])('%s', (program) => {
  test.skipIf(isMissing(program))('shows it', async () => {
    const said = await run(program, ['@127.0.0.1', '-p', `${await serve()}`, '+edns', 'www.example.net', 'A'])
    expect(said).toMatch(/EDE: 20 \(Not Authoritative\)/)
  })
})
