// Whole zones and differences, as dig and kdig get them.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { until } from '../../../helpers/until.ts'
import { isMissing, keyArgument, keyName, secret, startWorld, type World } from './world.ts'

let world: World
const zone = 'transfer.dev'

beforeAll(async () => {
  world = await startWorld()
  await world.addDomain(zone)
  await world.addRecord(zone, 'TXT', 'text', '"one"')
  await world.addRecord(zone, 'MX', '@', '10 mail.transfer.dev')
  await world.settled(zone)
})
afterAll(() => world.stop())

/** Records of a transfer as `owner type data`, in the order they came. */
function recordsIn(output: string): string[] {
  return output
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith(';') && !/\sTSIG\s/.test(line))
    .map((line) => line.split(/\s+/))
    .filter(([, , kind]) => kind === 'IN')
    .map(([owner, , , ...data]) => [owner, ...data].join(' '))
}

describe.skipIf(isMissing('dig', 'kdig'))('a whole zone', () => {
  test('is transferred with the key: SOA, name servers, records, the defaults at @ and www, SOA', async () => {
    const serial = await world.settled(zone)
    const output = await world.dig('-y', keyArgument, 'AXFR', zone)
    const records = recordsIn(output)
    const soa = `${zone}. SOA ns1.berth.test. hostmaster.${zone}. ${serial} 600 300 604800 60`
    expect([records[0], records.at(-1)]).toEqual([soa, soa])
    expect(records.slice(1, -1).sort()).toEqual([
      `text.${zone}. TXT "one"`,
      `${zone}. A 127.0.0.1`,
      `${zone}. MX 10 mail.${zone}.`,
      `${zone}. NS ns1.berth.test.`,
      `${zone}. NS ns2.berth.test.`,
      `www.${zone}. A 127.0.0.1`,
    ])
    expect(output).not.toMatch(/WARNING|couldn't verify|failed/i)
  })

  test('is refused without a key', async () => {
    expect(await world.dig('AXFR', zone)).toMatch(/Transfer failed/)
    expect(await world.kdig('AXFR', zone)).toMatch(/REFUSED/)
    expect(await world.kdig('IXFR=1', zone)).toMatch(/REFUSED/)
  })

  test('is refused to a wrong secret (BADSIG), a wrong name (BADKEY) and another algorithm (BADKEY)', async () => {
    const wrong = Buffer.alloc(32, 'wrong').toString('base64')
    expect(await world.dig('-y', `hmac-sha256:${keyName}:${wrong}`, 'AXFR', zone)).toMatch(
      /BADSIG[\s\S]*Transfer failed/,
    )
    expect(await world.dig('-y', `hmac-sha256:other.test:${secret}`, 'AXFR', zone)).toMatch(
      /BADKEY[\s\S]*Transfer failed/,
    )
    expect(await world.dig('-y', `hmac-sha512:${keyName}:${secret}`, 'AXFR', zone)).toMatch(
      /BADKEY[\s\S]*Transfer failed/,
    )
  })

  test('that is not ours is NOTAUTH', async () => {
    expect(await world.kdig('-y', keyArgument, 'AXFR', 'nowhere.dev')).toMatch(/NOTAUTH/)
  })

  test('is not transferred over UDP', async () => {
    expect(await world.kdig('-y', keyArgument, '+notcp', 'AXFR', zone)).toMatch(/REFUSED/)
  })

  test('of thousands of records comes in many messages, every one signed', async () => {
    const large = 'large.dev'
    await world.addDomain(large)
    const lines = Array.from({ length: 5_000 }, (_, index) => `h${index} 300 IN TXT "record ${index}"`)
    const made = await world.api.call('PUT', `/dns/${large}/zone`, {
      body: lines.join('\n'),
      headers: { 'content-type': 'text/dns' },
    })
    expect(made.status, made.text).toBe(200)
    await world.settled(large)
    const output = await world.kdig('-y', keyArgument, 'AXFR', large)
    expect(recordsIn(output).length).toBe(5_000 + 6)
    expect(Number(/(\d+) messages/.exec(output)?.[1])).toBeGreaterThan(3)
    expect(output).not.toMatch(/;; (WARNING|ERROR)/)
  })

  test('has the addresses of ALIAS records, and not those that nobody knows', async () => {
    const name = 'alias.dev'
    await world.addDomain(name)
    world.elsewhere.set('known.elsewhere.dev', '192.0.2.7')
    await world.addRecord(name, 'ALIAS', '@', 'site.localhost')
    await world.addRecord(name, 'ALIAS', 'known', 'known.elsewhere.dev')
    await world.addRecord(name, 'ALIAS', 'unknown', 'unknown.elsewhere.dev')
    await world.lookUp(name)
    await world.settled(name)
    const records = recordsIn(await world.dig('-y', keyArgument, '+time=5', 'AXFR', name))
    expect(records).toContain(`${name}. A 127.0.0.1`)
    expect(records).toContain(`known.${name}. A 192.0.2.7`)
    expect(records.join()).not.toContain('unknown')
  })
})

describe.skipIf(isMissing('kdig', 'dig'))('a difference', () => {
  test('is what changed since a known serial, step by step', async () => {
    const before = await world.settled(zone)
    const id = await world.addRecord(zone, 'A', 'new', '192.0.2.1')
    await world.settled(zone)
    await world.api.call('DELETE', `/dns/${zone}/records/${id}`)
    await world.settled(zone)
    await world.addRecord(zone, 'A', '@', '192.0.2.2')
    const after = await world.settled(zone)
    const records = recordsIn(await world.kdig('-y', keyArgument, `IXFR=${before}`, zone))
    const kinds = records.map((one) => (one.includes(' SOA ') ? Number(one.split(' ')[4]) : one))
    expect(kinds[0]).toBe(after)
    expect(kinds.at(-1)).toBe(after)
    const added = `new.${zone}. A 192.0.2.1`
    expect(kinds.slice(1, -1)).toEqual([
      ...[before, before + 1, added],
      ...[before + 1, added, before + 2],
      // The first address of one's own ends the default.
      ...[before + 2, `${zone}. A 127.0.0.1`, before + 3, `${zone}. A 192.0.2.2`],
    ])
    const udp = recordsIn(await world.kdig('-y', keyArgument, '+notcp', '+bufsize=1232', `IXFR=${after - 1}`, zone))
    expect(udp.length).toBe(6)
  })

  test('from the current serial, or one we never had, is the SOA alone or the whole zone', async () => {
    const serial = await world.settled(zone)
    const current = recordsIn(await world.kdig('-y', keyArgument, `IXFR=${serial}`, zone))
    expect(current.length).toBe(1)
    const whole = recordsIn(await world.kdig('-y', keyArgument, 'IXFR=0', zone))
    expect(whole.length).toBe(8)
    expect(whole[1]).not.toContain('SOA')
    // Over UDP the SOA alone says: come over TCP.
    expect(recordsIn(await world.kdig('-y', keyArgument, '+notcp', 'IXFR=0', zone)).length).toBe(1)
  })

  test('has the addresses of an ALIAS that were found elsewhere, when it is made and when they change', async () => {
    const name = 'moving.dev'
    await world.addDomain(name)
    const serial = await world.settled(name)
    world.elsewhere.set('target.elsewhere.dev', '192.0.2.9')
    await world.addRecord(name, 'ALIAS', 'a', 'target.elsewhere.dev')
    await world.lookUp(name)
    const made = await world.settled(name)
    const changes = async (from: number) =>
      recordsIn(await world.kdig('-y', keyArgument, `IXFR=${from}`, name)).filter((one) => !one.includes(' SOA '))
    expect(await changes(serial)).toEqual([`a.${name}. A 192.0.2.9`])
    world.elsewhere.set('target.elsewhere.dev', '192.0.2.10')
    await world.api.db.aliasAnswer.updateMany({ data: { dueAt: new Date() } })
    await world.lookUp(name)
    await world.settled(name)
    expect(await changes(made)).toEqual([`a.${name}. A 192.0.2.9`, `a.${name}. A 192.0.2.10`])
  })

  test('has what an ALIAS to another name of its zone is answered with', async () => {
    const name = 'inside.dev'
    await world.addDomain(name)
    await world.addRecord(name, 'ALIAS', '@', `host.${name}`)
    const host = await world.addRecord(name, 'A', 'host', '192.0.2.1')
    const serial = await world.settled(name)
    const changed = await world.api.call('PATCH', `/dns/${name}/records/${host}`, { body: { value: '192.0.2.2' } })
    expect(changed.status, changed.text).toBe(200)
    await world.settled(name)
    const records = recordsIn(await world.kdig('-y', keyArgument, `IXFR=${serial}`, name))
    expect(records.filter((one) => !one.includes(' SOA ')).sort()).toEqual(
      [`${name}. A 192.0.2.1`, `host.${name}. A 192.0.2.1`, `${name}. A 192.0.2.2`, `host.${name}. A 192.0.2.2`].sort(),
    )
  })
})

describe.skipIf(isMissing('dig', 'kdig'))('the catalog', () => {
  const catalog = 'catalog.berth.invalid'
  const members = async () =>
    recordsIn(await world.dig('-y', keyArgument, 'AXFR', catalog)).filter((one) => one.includes(' PTR '))

  test('has its version and a member for every zone, with a label that changes when the domain is made anew', async () => {
    const records = recordsIn(await world.dig('-y', keyArgument, 'AXFR', catalog))
    expect(records).toContain(`version.${catalog}. TXT "2"`)
    expect(records).toContain(`${catalog}. NS invalid.`)
    const name = 'again.dev'
    const member = async () => (await members()).find((one) => one.endsWith(` ${name}.`))
    await world.addDomain(name)
    const first = await until(member)
    await world.api.call('DELETE', `/domains/${name}`)
    await until(async () => !(await member()))
    await world.addDomain(name)
    expect(await until(member)).not.toBe(first)
  })

  test('is given as a difference, its serial only grows, and nobody without the key sees anything of it', async () => {
    const serialOf = async () => Number((await world.dig('-y', keyArgument, '+short', 'SOA', catalog)).split(' ')[2])
    const before = await serialOf()
    expect(before).toBeGreaterThan(Date.now() / 1000 - 60)
    await world.addDomain('more.dev')
    await until(async () => (await serialOf()) > before)
    const records = recordsIn(await world.kdig('-y', keyArgument, `IXFR=${before}`, catalog))
    expect(records.length).toBe(5)
    expect(records[3]).toMatch(/ PTR more\.dev\.$/)
    expect(await world.dig('SOA', catalog)).toMatch(/REFUSED/)
    expect(await world.dig('AXFR', catalog)).toMatch(/Transfer failed/)
  })
})

describe.skipIf(isMissing('dig', 'kdig'))('signed questions', () => {
  test('are answered as everyone else\u2019s, signed', async () => {
    for (const transport of ['+notcp', '+tcp']) {
      const soa = await world.dig('-y', keyArgument, transport, 'SOA', zone)
      expect(soa).toMatch(/NOERROR[\s\S]*TSIG/)
      const text = await world.dig('-y', keyArgument, transport, 'TXT', `text.${zone}`)
      expect(text).toMatch(/NOERROR[\s\S]*"one"[\s\S]*TSIG/)
      expect(soa + text).not.toMatch(/couldn't verify/i)
    }
  })

  test('NOTIFY to us is NOTIMP: we are the primary', async () => {
    expect(await world.kdig('NOTIFY', zone)).toMatch(/NOTIMPL/)
    expect(await world.kdig('-y', keyArgument, 'NOTIFY', zone)).toMatch(/NOTIMPL/)
  })
})
