import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { addressesIn, askUdp } from './packets.ts'
import { type Served, serveZones } from './zones.ts'

let served: Served
beforeAll(async () => {
  served = await serveZones()
})
afterAll(() => served.stop())
beforeEach(() => {
  for (const name of served.table.names()) served.remove(name)
})

const address = async (name: string) => addressesIn((await askUdp(served.port, name, 'A')).answer)[0]

describe('a zone below another', () => {
  test('of the same account is answered, verified or not', async () => {
    served.put('example.com', 'x.sub A 192.0.2.1')
    served.put('sub.example.com', 'x A 192.0.2.2', { verified: false })
    expect(await address('x.sub.example.com')).toBe('192.0.2.2')
  })

  test('of another account is not answered until it is verified', async () => {
    served.put('example.com', 'x.sub A 192.0.2.1')
    expect(await address('x.sub.example.com')).toBe('192.0.2.1')
    served.put('sub.example.com', 'x A 192.0.2.66', { account: 'acc_2', verified: false })
    expect(await address('x.sub.example.com')).toBe('192.0.2.1')
    expect([...served.table.served()].map(({ name }) => name)).toEqual(['example.com'])
    served.put('sub.example.com', 'x A 192.0.2.2', { account: 'acc_2', verified: true })
    expect(await address('x.sub.example.com')).toBe('192.0.2.2')
  })

  test('stops being answered when the name above is proved by another account', async () => {
    served.put('example.com', 'x.sub A 192.0.2.1', { verified: false })
    served.put('sub.example.com', 'x A 192.0.2.2', { account: 'acc_2', verified: false })
    expect(await address('x.sub.example.com')).toBe('192.0.2.2')
    served.put('example.com', 'x.sub A 192.0.2.1', { verified: true })
    expect(await address('x.sub.example.com')).toBe('192.0.2.1')
  })

  test('follows the nearest verified name above it', async () => {
    served.put('example.com', 'x A 192.0.2.1')
    served.put('b.example.com', 'x A 192.0.2.2', { account: 'acc_2' })
    served.put('a.b.example.com', 'x A 192.0.2.3', { account: 'acc_2', verified: false })
    expect(await address('x.a.b.example.com')).toBe('192.0.2.3')
  })
})

describe('DS at the apex of a zone', () => {
  test('is answered by the parent that delegates it, and else by the zone itself', async () => {
    served.put('sub.example.com', 'x A 192.0.2.2')
    expect((await askUdp(served.port, 'sub.example.com', 'DS')).authority[0]!.name).toBe('sub.example.com')
    served.put('example.com', 'y A 192.0.2.1')
    expect(await askUdp(served.port, 'sub.example.com', 'DS')).toMatchObject({ rcode: 'NOERROR' })
    expect((await askUdp(served.port, 'sub.example.com', 'DS')).authority[0]!.name).toBe('sub.example.com')
    served.put('example.com', `sub NS ns1.berth.example\nsub DS 1 13 2 ${'00'.repeat(32)}`)
    expect((await askUdp(served.port, 'sub.example.com', 'DS')).answer).toHaveLength(1)
    expect((await askUdp(served.port, 'sub.example.com', 'NS')).aa).toBe(true)
  })
})
