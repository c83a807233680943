// Every question that a zone answers is counted once, by type and by code, and names make no difference.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { loadPacketSockets } from '../../../src/engines/nameserver/workers/packets.ts'
import { until } from '../../helpers/until.ts'
import { askTcp, askUdp } from './packets.ts'
import { startWorld, type World } from './world.ts'

const possible = process.env.BERTH_REQUIRE_PEERS === '1' || (await loadPacketSockets()) !== null

describe.each([0, ...(possible ? [2] : [])])('with %i threads', (workers) => {
  let world: World
  beforeAll(async () => {
    world = await startWorld({ workers, rateLimit: null })
    for (const name of ['one.com', 'two.com']) {
      await world.newDomain(name)
      await world.record(name, 'A', 'www', '192.0.2.1')
    }
    await until(async () => (await askUdp(world.ports[0]!, 'www.two.com', 'A')).rcode === 'NOERROR')
  })
  afterAll(() => world.stop())
  beforeEach(async () => {
    await world.nameserver.flushTraffic()
    // What threads have counted comes some seconds later.
    if (workers === 0) await world.db.dnsTraffic.deleteMany()
  })

  async function counted(zone: string): Promise<Record<string, number>> {
    await world.nameserver.flushTraffic()
    const { id } = await world.db.domain.findFirstOrThrow({ where: { name: zone } })
    const rows = await world.db.dnsTraffic.findMany({ where: { domainId: id, step: 'hour' } })
    const sums: Record<string, number> = {}
    for (const row of rows) {
      for (const [name, value] of Object.entries(row)) {
        if (typeof value === 'bigint' && value > 0n) sums[name] = (sums[name] ?? 0) + Number(value)
      }
    }
    return sums
  }

  if (workers === 0) {
    test('by UDP and TCP, from the cache and not, after the zone has changed, and only for the zone', async () => {
      const [udp, tcp] = world.ports as [number, number]
      for (let round = 0; round < 3; round++) await askUdp(udp, 'www.one.com', 'A')
      await askTcp(tcp, 'www.one.com', 'AAAA')
      await world.record('one.com', 'MX', '@', '10 mail.one.com')
      await until(async () => (await askUdp(udp, 'one.com', 'TYPE65280')).rcode === 'NOERROR')
      await askUdp(udp, 'www.one.com', 'A')
      await askUdp(udp, 'www.two.com', 'A')
      await askUdp(udp, 'www.nowhere.com', 'A')
      const { typeOther = 0, rcodeNoerror, ...others } = await counted('one.com')
      expect(others).toEqual({ typeA: 4, typeAaaa: 1 })
      expect(rcodeNoerror).toBe(5 + typeOther)
      expect(typeOther).toBeGreaterThan(0)
      expect(await counted('two.com')).toEqual({ typeA: 1, rcodeNoerror: 1 })
      expect(await world.db.dnsTraffic.count({ where: { step: 'minute' } })).toBeLessThan(5)
    })

    test('random names are counted for their zone alone, in one row', async () => {
      const asked = Array.from({ length: 200 }, (_, index) => askUdp(world.ports[0]!, `x${index}.one.com`, 'A'))
      await Promise.all(asked)
      expect(await counted('one.com')).toEqual({ typeA: 200, rcodeNxdomain: 200 })
      expect(await world.db.dnsTraffic.count({ where: { step: 'hour' } })).toBe(1)
    })
  } else {
    test('what they answer is counted when the nameserver closes at the latest', async () => {
      const before = (await counted('one.com')).typeA ?? 0
      for (let round = 0; round < 4; round++) {
        const ports = Array.from({ length: 20 }, (_, index) => world.ports[index % 2]!)
        await Promise.all(ports.map((port) => askUdp(port, 'www.one.com', 'A')))
      }
      const { id } = await world.db.domain.findFirstOrThrow({ where: { name: 'one.com' } })
      await world.nameserver.close()
      const where = { domainId: id, step: 'hour' }
      const { _sum } = await world.db.dnsTraffic.aggregate({ where, _sum: { typeA: true, rcodeNoerror: true } })
      expect(_sum).toEqual({ typeA: BigInt(before + 80), rcodeNoerror: BigInt(before + 80) })
    })
  }
})
