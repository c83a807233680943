import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createNameserver } from '../../../src/engines/nameserver/server.ts'
import { postgresUrl } from '../../helpers/database.ts'
import { until } from '../../helpers/until.ts'
import { addressesIn, askTcp, askUdp } from './packets.ts'
import { startWorld, type World } from './world.ts'

let world: World
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.stop())

async function addresses(name: string): Promise<string[][]> {
  return Promise.all(
    world.ports.flatMap((port) =>
      [askUdp, askTcp].map(async (ask) => addressesIn((await ask(port, name, 'A')).answer)),
    ),
  )
}
const everywhere = async (name: string, address: string | undefined) =>
  (await addresses(name)).every((found) => found[0] === address)

describe('a change', () => {
  // Its notification alone brings it: the next comparison with the database is minutes away, and nobody waits so long.
  test('is answered by both listeners, over UDP and TCP, as soon as it is told', async () => {
    expect((await askUdp(world.ports[0]!, 'www.change.com', 'A')).rcode).toBe('REFUSED')
    await world.newDomain('change.com')
    await until(() => everywhere('www.change.com', '192.0.2.80'))
    const made = await world.record('change.com', 'A', 'www', '192.0.2.1')
    await until(() => everywhere('www.change.com', '192.0.2.1'))
    const path = `/dns/change.com/records/${made.body.id}`
    await world.call('PATCH', path, { body: { value: '192.0.2.2' } })
    await until(() => everywhere('www.change.com', '192.0.2.2'))
    await world.call('DELETE', path)
    await until(() => everywhere('www.change.com', '192.0.2.80'))
    await world.call('DELETE', '/domains/change.com')
    await until(async () => (await askUdp(world.ports[1]!, 'change.com', 'SOA')).rcode === 'REFUSED')
  })

  test('is answered again and again, one after the other', async () => {
    await world.newDomain('quick.com')
    for (let index = 1; index <= 30; index++) {
      await world.record('quick.com', 'A', `n${index}`, `192.0.2.${index}`)
      await until(() => everywhere(`n${index}.quick.com`, `192.0.2.${index}`))
    }
  })

  test('shows in the serial that the zone’s status reads from the nameservers’ answers', async () => {
    await world.newDomain('serial.com')
    for (let index = 0; index < 5; index++) await world.record('serial.com', 'TXT', '@', `"${index}"`)
    const { body } = await world.call('GET', '/dns/serial.com/zone/status')
    await until(async () => {
      const answers = await Promise.all(world.ports.map((port) => askUdp(port, 'serial.com', 'SOA')))
      return answers.every(({ answer }) => answer[0]!.data.subarray(-20).readUInt32BE(0) === body.serial)
    })
  })

  test('during a load of others is not lost', async () => {
    await world.newDomain('busy.com')
    const names = Array.from({ length: 60 }, (_, index) => `r${index}`)
    await Promise.all(names.map((name, index) => world.record('busy.com', 'A', name, `192.0.2.${index}`)))
    await until(async () =>
      (await Promise.all(names.map((n, i) => everywhere(`${n}.busy.com`, `192.0.2.${i}`)))).every(Boolean),
    )
    await until(() => world.nameserver.snapshot!.ageSeconds() === 0)
  })
})

describe('claims to one name', () => {
  const refused = async (name: string) => {
    const asked = world.ports.flatMap((port) => [askUdp(port, name, 'A'), askTcp(port, name, 'A')])
    return (await Promise.all(asked)).every(({ rcode, answer }) => rcode === 'REFUSED' && answer.length === 0)
  }

  test('of two accounts are refused until one is verified, and again when it is gone', async () => {
    const other = await world.newAccount()
    await world.newDomain('claimed.com')
    await world.record('claimed.com', 'A', '@', '192.0.2.1')
    await until(() => everywhere('claimed.com', '192.0.2.1'))
    await world.newDomain('claimed.com', other.token)
    await world.record('claimed.com', 'A', '@', '192.0.2.2', 300, other.token)
    await until(() => refused('claimed.com'))
    await world.db.$executeRaw`UPDATE domain SET verified = true
      WHERE name = 'claimed.com' AND account_id = ${other.accountId}`
    await until(() => everywhere('claimed.com', '192.0.2.2'))
    await world.call('DELETE', '/domains/claimed.com', { token: other.token })
    // Its delegation may still be there.
    await until(() => refused('claimed.com'))
  })

  test('above and below that of another account are refused, until the other one is verified', async () => {
    const other = await world.newAccount()
    await world.newDomain('tree.com')
    await world.record('tree.com', 'A', 'shop', '192.0.2.1')
    await until(() => everywhere('shop.tree.com', '192.0.2.1'))
    await world.newDomain('shop.tree.com', other.token)
    await world.record('shop.tree.com', 'A', '@', '192.0.2.2', 300, other.token)
    await until(async () => (await refused('shop.tree.com')) && (await refused('tree.com')))
    await world.db.$executeRaw`UPDATE domain SET verified = true WHERE name = 'shop.tree.com'`
    await until(() => everywhere('shop.tree.com', '192.0.2.2'))
    // The zone above has nothing to say about it any more, so that it may be answered.
    await until(async () => (await askUdp(world.ports[0]!, 'tree.com', 'SOA')).aa)
    await world.db.$executeRaw`UPDATE domain SET verified = false WHERE name = 'shop.tree.com'`
    await until(async () => (await refused('shop.tree.com')) && (await refused('tree.com')))
  })

  test('that were not proved in 30 days are refused', async () => {
    await world.newDomain('ended.com')
    await world.record('ended.com', 'A', '@', '192.0.2.1')
    await until(() => everywhere('ended.com', '192.0.2.1'))
    await world.db.$executeRaw`UPDATE domain SET unproved_since = now() - interval '30 days', next_check_at = NULL
      WHERE name = 'ended.com'`
    await until(() => refused('ended.com'))
  })

  test('have the nameservers of the claim at the apex, also when these change', async () => {
    await world.newDomain('apex.com')
    const at = async () => {
      const { answer } = await askUdp(world.ports[0]!, 'apex.com', 'NS')
      return answer.map(({ data }) => data.toString('latin1')).join()
    }
    await until(async () => (await at()).includes('ns2'))
    await world.db.$executeRaw`UPDATE domain SET nameservers = '{ns1.berth.example,ns7.berth.example}',
      serial = serial + 1 WHERE name = 'apex.com'`
    await until(async () => (await at()).includes('ns7') && !(await at()).includes('ns2'))
  })

  test('a wildcard domain has no zone of its own', async () => {
    await world.newDomain('parent.com')
    await world.db.$executeRaw`UPDATE domain SET verified = true WHERE name = 'parent.com'`
    await world.newDomain('*.parent.com')
    await world.record('parent.com', 'A', '*', '192.0.2.9')
    await until(() => everywhere('any.parent.com', '192.0.2.9'))
    expect(world.nameserver.snapshot!.table.get('*.parent.com')).toBeUndefined()
  })
})

describe('more zones than one statement reads', () => {
  test('are all there, after a change and after a start', async () => {
    await world.db.$executeRaw`INSERT INTO domain (id, account_id, project_id, name, txt_value, created_at, updated_at)
      SELECT 'dom_' || lpad(i::text, 24, '0'), account_id, project_id, 'bulk' || i || '.com', 't', now(), now()
      FROM domain, generate_series(1, 2500) i WHERE name = 'quick.com'`
    const size = () => world.nameserver.snapshot!.table.names().filter((name) => name.startsWith('bulk')).length
    await until(async () => size() === 2500)
    const second = createNameserver(world.deps)
    const [first] = await second.listen()
    expect(second.snapshot!.table.size).toBe(world.nameserver.snapshot!.table.size)
    expect((await askUdp(first!.port, 'bulk2500.com', 'SOA')).aa).toBe(true)
    await second.close()
    await world.db.$executeRaw`DELETE FROM domain WHERE name LIKE 'bulk%'`
    await until(async () => size() === 0)
  })
})

describe('while the database is away', () => {
  test('answers go on, and what changed meanwhile is answered when it is back', async () => {
    await world.newDomain('outage.com')
    await world.record('outage.com', 'A', 'www', '192.0.2.1')
    await until(() => everywhere('www.outage.com', '192.0.2.1'))
    const name = new URL(world.databaseUrl).pathname.slice(1)
    const admin = new pg.Client({ connectionString: postgresUrl() })
    await admin.connect()
    const inside = new pg.Client({ connectionString: world.databaseUrl })
    inside.on('error', () => {})
    await inside.connect()
    const [{ pid }] = (await inside.query('SELECT pg_backend_pid() AS pid')).rows
    await admin.query(`ALTER DATABASE ${name} ALLOW_CONNECTIONS false`)
    await admin.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1 AND pid <> $2`, [
      name,
      pid,
    ])
    await until(async () => !world.deps.notifications.connected)
    await inside.query(`UPDATE dns_record SET value = '192.0.2.2' WHERE value = '192.0.2.1' AND name = 'www'`)
    await inside.query(`UPDATE domain SET serial = serial + 1 WHERE name = 'outage.com'`)
    await inside.query(`DELETE FROM domain WHERE name = 'busy.com'`)
    expect(await everywhere('www.outage.com', '192.0.2.1')).toBe(true)
    expect((await askUdp(world.ports[0]!, 'never-asked.outage.com', 'A')).rcode).toBe('NXDOMAIN')
    expect(world.nameserver.snapshot!.ageSeconds()).toBeGreaterThan(0)
    await admin.query(`ALTER DATABASE ${name} ALLOW_CONNECTIONS true`)
    await until(() => everywhere('www.outage.com', '192.0.2.2'))
    await until(async () => (await askUdp(world.ports[0]!, 'busy.com', 'SOA')).rcode === 'REFUSED')
    await until(async () => world.nameserver.snapshot!.ageSeconds() === 0)
    await inside.end()
    await admin.end()
  })
})
