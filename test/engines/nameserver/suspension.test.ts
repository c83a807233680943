// Zones of suspended accounts: they are answered as before, or REFUSED, over UDP and TCP, at both nameservers.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createNameserver } from '../../../src/engines/nameserver/server.ts'
import { createAccount } from '../../../src/services/accounts/accounts.ts'
import { until } from '../../helpers/until.ts'
import { addressesIn, askTcp, askUdp } from './packets.ts'
import { startWorld, type World } from './world.ts'

let world: World
let desk: string
let suspect: { accountId: string; token: string }
beforeAll(async () => {
  world = await startWorld()
  desk = (await createAccount(world.db, 'the desk', ['operator'])).token
  suspect = await world.newAccount('suspect')
  await world.newDomain('suspect.com', suspect.token)
  await world.record('suspect.com', 'A', 'www', '192.0.2.1', 300, suspect.token)
  await world.newDomain('honest.com')
  await world.record('honest.com', 'A', 'www', '192.0.2.2')
})
afterAll(() => world.stop())

const set = async (body: object) => {
  const answer = await world.call('PATCH', `/operator/accounts/${suspect.accountId}`, { token: desk, body })
  expect(answer.status, answer.text).toBe(200)
}

/** What every listener answers over UDP and TCP: an address, or why there is none. */
async function answers(name: string, type = 'A'): Promise<string[]> {
  const found = await Promise.all(
    world.ports.flatMap((port) => [askUdp, askTcp].map(async (ask) => ask(port, name, type))),
  )
  return [...new Set(found.map(({ answer, rcode }) => addressesIn(answer)[0] ?? rcode))]
}
const all = (name: string, expected: string, type?: string) =>
  until(async () => String(await answers(name, type)) === expected)

describe('the zone of a suspended account', () => {
  test('is answered as before unless it is to be refused, and again when the account is resumed', async () => {
    await all('www.suspect.com', '192.0.2.1')
    await set({ suspended: true })
    // A later change is answered, so the suspension was heard of before it.
    await world.record('honest.com', 'A', 'after', '192.0.2.3')
    await all('after.honest.com', '192.0.2.3')
    expect(await answers('www.suspect.com')).toEqual(['192.0.2.1'])
    await set({ suspended: true, dns: 'refuse' })
    for (const [name, type] of [
      ['www.suspect.com', 'A'],
      ['suspect.com', 'SOA'],
      ['suspect.com', 'NS'],
      ['suspect.com', 'DS'],
      ['never-asked.suspect.com', 'TXT'],
      ['WWW.Suspect.COM', 'A'],
    ] as const) {
      await all(name, 'REFUSED', type)
    }
    expect(await answers('www.honest.com')).toEqual(['192.0.2.2'])
    await set({ suspended: true, dns: 'serve' })
    await all('www.suspect.com', '192.0.2.1')
    await set({ suspended: true, dns: 'refuse' })
    await all('www.suspect.com', 'REFUSED')
    await set({ suspended: false })
    await all('www.suspect.com', '192.0.2.1')
  })

  test('is known to be refused by a nameserver that starts then', async () => {
    await set({ suspended: true, dns: 'refuse' })
    const second = createNameserver(world.deps)
    const [{ port } = { port: 0 }] = await second.listen()
    expect((await askUdp(port, 'www.suspect.com', 'A')).rcode).toBe('REFUSED')
    expect((await askUdp(port, 'www.honest.com', 'A')).rcode).toBe('NOERROR')
    await second.close()
    await set({ suspended: false })
    await all('www.suspect.com', '192.0.2.1')
  })

  test('is not answered by a zone above it or by a younger claim of another account instead', async () => {
    await world.newDomain('above.com')
    await world.record('above.com', 'A', '*', '192.0.2.9')
    await world.newDomain('sub.above.com', suspect.token)
    await world.db.$executeRaw`UPDATE domain SET verified = true WHERE name IN ('above.com', 'sub.above.com')`
    await world.record('sub.above.com', 'A', 'www', '192.0.2.8', 300, suspect.token)
    await all('www.sub.above.com', '192.0.2.8')
    await world.newDomain('suspect.com')
    await world.record('suspect.com', 'A', 'www', '192.0.2.7')
    await set({ suspended: true, dns: 'refuse' })
    await all('www.sub.above.com', 'REFUSED')
    await all('www.suspect.com', 'REFUSED')
    expect(await answers('other.above.com')).toEqual(['192.0.2.9'])
    await set({ suspended: false })
    await all('www.sub.above.com', '192.0.2.8')
  })
})
