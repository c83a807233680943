// Sets of records near the length of a message: whole over TCP as long as they fit, and never nothing at all.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { askTcp, askUdp } from './packets.ts'
import { type Served, serveZones } from './zones.ts'

let served: Served
beforeAll(async () => {
  served = await serveZones({ rateLimit: null })
})
afterAll(() => served.stop())

/** A TXT record of so many octets of data. */
const text = (octets: number, n: number) => {
  const strings: string[] = []
  for (let left = octets; left > 0; left -= 256) strings.push(`"${String(n).padEnd(Math.min(left, 256) - 1, 'x')}"`)
  return strings.join(' ')
}
const put = (sizes: number[], name = 'set') =>
  served.put('example.com', sizes.map((size, n) => `${name} TXT ${text(size, n)}`).join('\n'))
const dataIn = (all: { data: Buffer }[]) => all.reduce((sum, { data }) => sum + data.length, 0)

// 12 of the header, 17 and 4 of the question, and 12 of each record besides its data.
const room = (records: number) => 65_535 - 12 - 21 - 12 * records

test.each([
  ['of one octet less than a message', -1],
  ['as long as a message', 0],
])('a set %s is answered as a whole', async (_, more) => {
  const sizes = Array.from({ length: 16 }, () => 4_000)
  sizes.push(room(17) - 16 * 4_000 + more)
  put(sizes)
  for (let round = 0; round < 2; round++) {
    const { tc, answer, size } = await askTcp(served.port, 'set.example.com', 'TXT')
    expect([tc, answer.length, dataIn(answer), size]).toEqual([false, 17, room(17) + more, 65_535 + more])
  }
  expect(await askUdp(served.port, 'set.example.com', 'TXT')).toMatchObject({ tc: true, answer: [] })
})

test('of a set that is longer, as many records are answered as fit, and that some are missing', async () => {
  put(Array.from({ length: 18 }, () => 4_096))
  for (const edns of [undefined, 1232]) {
    const { tc, answer } = await askTcp(served.port, 'set.example.com', 'TXT', edns === undefined ? {} : { edns })
    expect([tc, answer.length]).toEqual([true, 15])
  }
})

test('so it is with a wildcard', async () => {
  put(
    Array.from({ length: 18 }, () => 4_096),
    '*.set',
  )
  for (const name of ['a', 'longer-one', 'a']) {
    const { tc, answer } = await askTcp(served.port, `${name}.set.example.com`, 'TXT')
    expect([tc, answer.length]).toEqual([true, 15])
    expect(answer[0]!.name).toBe(`${name}.set.example.com`)
  }
})

test('with an OPT record that just does not fit beside it, the last record is left out', async () => {
  const sizes = Array.from({ length: 16 }, () => 4_000)
  sizes.push(room(17) - 16 * 4_000)
  put(sizes)
  const { tc, answer, opt } = await askTcp(served.port, 'set.example.com', 'TXT', { edns: 1232 })
  expect([tc, answer.length, opt !== null]).toEqual([true, 16, true])
})
