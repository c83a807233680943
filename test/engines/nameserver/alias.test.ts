import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { createAliasHandler, type ResolveAlias } from '../../../src/engines/nameserver/load/alias.ts'
import { LostLease } from '../../../src/platform/database/lease.ts'
import { requeueOverdueAliases } from '../../../src/services/dns/zones/aliases.ts'
import { until } from '../../helpers/until.ts'
import { addressesIn, askUdp, question, readMessage } from './packets.ts'
import { startWorld, type World } from './world.ts'
import { ask, negativeSoa, type Served, serveZones, zoneOf } from './zones.ts'

let served: Served | null = null
afterEach(async () => {
  vi.useRealTimers()
  await served?.stop()
  served = null
})

describe('an ALIAS inside the zone', () => {
  const text = `
    @ ALIAS host.example.com
    host 120 A 192.0.2.1
    two ALIAS three.example.com
    three CNAME host.example.com
    wild ALIAS any.w.example.com
    *.w A 192.0.2.2
    missing ALIAS nowhere.example.com
    loop1 ALIAS loop2.example.com
    loop2 ALIAS loop1.example.com
    below ALIAS host.cut.example.com
    cut NS ns.example.net
    host.cut A 192.0.2.9
    out ALIAS three-out.example.com
    three-out CNAME host.example.net
  `
  const zone = zoneOf(text)

  test('answers with what stands there, through CNAME and other ALIAS', () => {
    expect(ask(zone, 'example.com', 'A').answer).toEqual(['example.com 120 A 192.0.2.1'])
    expect(ask(zone, 'two.example.com', 'A').answer).toEqual(['two.example.com 120 A 192.0.2.1'])
    expect(ask(zone, 'wild.example.com', 'A').answer).toEqual(['wild.example.com 300 A 192.0.2.2'])
  })

  test('has NODATA where its target has none', () => {
    expect(ask(zone, 'example.com', 'AAAA')).toMatchObject({ rcode: 'NOERROR', answer: [], authority: negativeSoa() })
    expect(ask(zone, 'missing.example.com', 'A')).toMatchObject({ rcode: 'NOERROR', authority: negativeSoa() })
    expect(ask(zone, 'example.com', 'TXT')).toMatchObject({ rcode: 'NOERROR', answer: [] })
  })

  test('in a circle is SERVFAIL', () => {
    expect(ask(zone, 'loop1.example.com', 'A')).toMatchObject({ rcode: 'SERVFAIL', answer: [] })
  })

  test('has the addresses that were found where it leads out of the zone or below a delegation', () => {
    const known = zoneOf(`${text}\nbelow 60 ALIASED -\nout 60 ALIASED 192.0.2.7\nout 60 ALIASED 2001:db8::7`)
    for (const name of ['below', 'out']) expect(ask(zone, `${name}.example.com`, 'A').found.awaits).not.toBeNull()
    expect(ask(known, 'below.example.com', 'A')).toMatchObject({ rcode: 'NOERROR', answer: [] })
    const { answer, found } = ask(known, 'out.example.com', 'A')
    expect(answer).toEqual(['out.example.com 60 A 192.0.2.7'])
    expect(found.cacheable).toBe(true)
    expect(ask(known, 'out.example.com', 'AAAA').answer).toHaveLength(1)
  })
})

describe('an answer', () => {
  test('waits for addresses that are not known yet, which come with the next version of the zone', async () => {
    served = await serveZones()
    served.put('example.com', '@ ALIAS host.example.net')
    const asking = askUdp(served.port, 'eXample.com', 'A', { edns: 1232 })
    // The second question is answered when the first is waiting.
    expect((await askUdp(served.port, 'example.com', 'MX')).rcode).toBe('NOERROR')
    served.put('example.com', '@ ALIAS host.example.net\n@ 60 ALIASED 192.0.2.7')
    const message = await asking
    expect([message.rcode, addressesIn(message.answer), message.answer[0]!.name]).toEqual([
      'NOERROR',
      ['192.0.2.7'],
      'eXample.com',
    ])
  })

  test('is SERVFAIL after a second without any', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    served = await serveZones()
    served.put('example.com', '@ ALIAS host.example.net')
    const answers: Buffer[] = []
    const channel = { tcp: false, send: (answer: Buffer) => void answers.push(answer) }
    void served.responder.respond(question('example.com', 'A'), { address: '127.0.0.1', port: 9 }, channel)
    await until(() => vi.getTimerCount() === 1)
    vi.advanceTimersByTime(999)
    expect((await askUdp(served.port, 'example.com', 'MX')).rcode).toBe('NOERROR')
    expect(answers).toEqual([])
    vi.advanceTimersByTime(1)
    await until(() => answers.length === 1)
    expect(readMessage(answers[0]!).rcode).toBe('SERVFAIL')
  })

  test('of one account may wait however many another has waiting', async () => {
    served = await serveZones({ rateLimit: null })
    served.put('hog.com', '@ ALIAS slow1.example.org', { account: 'hog' })
    served.put('example.com', '@ ALIAS host.example.net', { account: 'acc' })
    const channel = { tcp: false, send() {} }
    for (let n = 0; n < 1_200; n++) {
      void served.responder.respond(question('hog.com', 'A'), { address: '127.0.0.1', port: 9 }, channel)
    }
    const asking = askUdp(served.port, 'example.com', 'A')
    expect((await askUdp(served.port, 'example.com', 'MX')).rcode).toBe('NOERROR')
    served.put('example.com', '@ ALIAS host.example.net\n@ 60 ALIASED 192.0.2.7', { account: 'acc' })
    expect((await asking).rcode).toBe('NOERROR')
  })
})

describe('the job', () => {
  let world: World
  let found: Record<string, string[]>
  let ttl: number
  let asked: string[]
  beforeAll(async () => {
    world = await startWorld()
  })
  afterAll(() => world.stop())

  const resolveAlias: ResolveAlias = async (name, type) => {
    asked.push(`${name} ${type}`)
    const addresses = found[name]
    if (!addresses) throw new Error('no answer')
    return addresses.filter((one) => one.includes(':') === (type === 'AAAA')).map((address) => ({ address, ttl }))
  }
  const idOf = async (name: string) => (await world.db.domain.findFirstOrThrow({ where: { name } })).id
  const serialOf = async (name: string) => (await world.db.domain.findFirstOrThrow({ where: { name } })).serial

  async function run(zone: string, production = false): Promise<void> {
    asked = []
    const config = { ...world.config, production }
    const { alias } = createAliasHandler({ ...world.deps, config, resolveAlias })
    await alias.run(
      { domainId: await idOf(zone) },
      { attempt: 1, signal: new AbortController().signal, async requireHeld() {} },
    )
  }
  const due = (name: string) => world.db.aliasAnswer.updateMany({ where: { name }, data: { dueAt: new Date() } })
  const answers = async (name: string) => addressesIn((await askUdp(world.ports[0]!, name, 'A')).answer)

  async function newZone(name: string, aliases: Record<string, string>): Promise<void> {
    ttl = 300
    await world.newDomain(name)
    for (const [owner, target] of Object.entries(aliases)) await world.record(name, 'ALIAS', owner, target)
  }

  test('of a worker that lost it to another one changes nothing', async () => {
    await newZone('late.com', { '@': 'late.example.net' })
    found = { 'late.example.net': ['192.0.2.77'] }
    asked = []
    const { alias } = createAliasHandler({ ...world.deps, resolveAlias })
    const requireHeld = () => Promise.reject(new LostLease())
    const lost = { attempt: 1, signal: new AbortController().signal, requireHeld }
    await expect(alias.run({ domainId: await idOf('late.com') }, lost)).rejects.toThrow(LostLease)
    expect(await answers('late.com')).not.toContain('192.0.2.77')
    await run('late.com')
    await until(async () => (await answers('late.com')).includes('192.0.2.77'))
  })

  test('is queued by every change of what an ALIAS may lead through, and by nothing else', async () => {
    await newZone('queued.com', {})
    const id = await idOf('queued.com')
    const queued = async () => (await world.db.job.deleteMany({ where: { kind: 'alias', key: id } })).count
    await world.record('queued.com', 'CNAME', 'c', 'x.example.net')
    expect(await queued()).toBe(0)
    const { body } = await world.record('queued.com', 'ALIAS', '@', 'c.queued.com')
    expect(await queued()).toBe(1)
    await world.record('queued.com', 'TXT', 't', 'hello')
    expect(await queued()).toBe(0)
    await world.record('queued.com', 'NS', 'n', 'ns.example.net')
    expect(await queued()).toBe(1)
    await world.call('PATCH', `/dns/queued.com/records/${body.id}`, { body: { value: 'other.example.net' } })
    expect(await queued()).toBe(1)
    await world.call('DELETE', '/domains/queued.com')
    expect(await queued()).toBe(0)
  })

  test('raises the serial when addresses change, and only then, whatever their order', async () => {
    await newZone('one.com', { '@': 'host.example.net', in: 'c.one.com' })
    await world.record('one.com', 'CNAME', 'c', 'deep.example.net')
    const before = await serialOf('one.com')
    found = { 'host.example.net': ['192.0.2.2', '192.0.2.1', '2001:db8::1'], 'deep.example.net': ['192.0.2.5'] }
    await run('one.com')
    expect(asked.sort()).toEqual(
      ['deep', 'host'].flatMap((host) => [`${host}.example.net A`, `${host}.example.net AAAA`]),
    )
    expect(await serialOf('one.com')).toBe(before + 1)
    await until(async () => String(await answers('one.com')) === '192.0.2.1,192.0.2.2')
    expect(await answers('in.one.com')).toEqual(['192.0.2.5'])
    await run('one.com')
    expect(asked).toEqual([])
    found['host.example.net']!.reverse()
    await due('@')
    await run('one.com')
    expect(asked).toHaveLength(2)
    expect(await serialOf('one.com')).toBe(before + 1)
    found['host.example.net'] = ['192.0.2.3']
    await due('@')
    await run('one.com')
    expect(await serialOf('one.com')).toBe(before + 2)
    await until(async () => String(await answers('one.com')) === '192.0.2.3')
  })

  test('comes again at the ttl, between a minute and an hour', async () => {
    await newZone('ttl.com', { '@': 'host.example.net' })
    found = { 'host.example.net': ['192.0.2.1'] }
    for (const [told, seconds] of [
      [1, 60],
      [600, 600],
      [86_400, 3_600],
    ] as const) {
      ttl = told
      await due('@')
      const atMs = Date.now()
      await run('ttl.com')
      const job = await world.db.job.findFirstOrThrow({ where: { kind: 'alias', key: await idOf('ttl.com') } })
      const row = await world.db.aliasAnswer.findFirstOrThrow({ where: { domainId: await idOf('ttl.com') } })
      expect(row.dueAt.getTime()).toBeGreaterThanOrEqual(atMs + seconds * 1_000)
      expect(row.dueAt.getTime()).toBeLessThanOrEqual(Date.now() + seconds * 1_000)
      expect(job.runAt.getTime()).toBeLessThanOrEqual(row.dueAt.getTime())
      await world.db.job.deleteMany({ where: { kind: 'alias', key: await idOf('ttl.com') } })
    }
  })

  test('keeps what it knows while lookups fail, but not for another target, and forgets what is not asked for', async () => {
    await newZone('fails.com', { '@': 'host.example.net' })
    found = { 'host.example.net': ['192.0.2.1'] }
    await run('fails.com')
    const serial = await serialOf('fails.com')
    found = {}
    for (let failures = 1; failures <= 3; failures++) {
      await due('@')
      await run('fails.com')
      expect(await world.db.aliasAnswer.findFirst({ where: { domainId: await idOf('fails.com') } })).toMatchObject({
        addresses: ['192.0.2.1'],
        failures,
      })
    }
    expect(await serialOf('fails.com')).toBe(serial)
    const { body } = await world.call('GET', '/dns/fails.com/records')
    const path = `/dns/fails.com/records/${body.records[0].id}`
    await world.call('PATCH', path, { body: { value: 'dead.example.net' } })
    await run('fails.com')
    expect(await serialOf('fails.com')).toBe(serial + 2)
    await until(() => world.nameserver.snapshot!.table.get('fails.com')?.serial === serial + 2)
    expect((await askUdp(world.ports[0]!, 'fails.com', 'A')).rcode).toBe('SERVFAIL')
    found = { 'dead.example.net': ['192.0.2.3'] }
    await due('@')
    await run('fails.com')
    await world.call('DELETE', path)
    await world.record('fails.com', 'TXT', '@', 'left')
    // What was found is told of no more, even before the job has come.
    const gone = await serialOf('fails.com')
    await until(() => world.nameserver.snapshot!.table.get('fails.com')?.serial === gone)
    expect(addressesIn((await askUdp(world.ports[0]!, 'fails.com', 'A')).answer)).toEqual(['192.0.2.80'])
    await run('fails.com')
    expect(await world.db.aliasAnswer.count({ where: { domainId: await idOf('fails.com') } })).toBe(0)
  })

  test('stores no address in production that is not public', async () => {
    await newZone('inner.com', { '@': 'mixed.example.net', hidden: 'inner.example.net' })
    const inner = [
      '10.0.0.1',
      '127.0.0.1',
      '169.254.169.254',
      '100.64.0.1',
      '::1',
      'fe80::1',
      'fc00::1',
      '64:ff9b::10.0.0.1',
    ]
    found = { 'mixed.example.net': [...inner, '8.8.8.8', '2606:4700:4700::1111'], 'inner.example.net': inner }
    await run('inner.com', true)
    const rows = await world.db.aliasAnswer.findMany({
      where: { domainId: await idOf('inner.com') },
      orderBy: { name: 'asc' },
    })
    expect(rows.map(({ name, addresses }) => [name, addresses])).toEqual([
      ['@', ['8.8.8.8', '2606:4700:4700::1111']],
      ['hidden', []],
    ])
    await until(async () => String(await answers('inner.com')) === '8.8.8.8')
    expect((await askUdp(world.ports[0]!, 'hidden.inner.com', 'A')).rcode).toBe('NOERROR')
  })

  test('looks a zone of many targets up in several runs, so that others come between', async () => {
    const lines = Array.from({ length: 250 }, (_, n) => `h${n} 300 IN ALIAS t${n}.example.net.`)
    await world.newDomain('many.com')
    const rows = lines.map((_, n) => ({ type: 'ALIAS', name: `h${n}`, value: `t${n}.example.net` }))
    const made = await world.call('POST', '/dns/many.com/records/batch', { body: { create: rows } })
    expect(made.status, made.text).toBe(200)
    found = Object.fromEntries(lines.map((_, n) => [`t${n}.example.net`, ['192.0.2.1']]))
    for (const known of [200, 250]) {
      await run('many.com')
      expect(await world.db.aliasAnswer.count({ where: { domainId: await idOf('many.com') } })).toBe(known)
      const job = await world.db.job.findFirstOrThrow({ where: { kind: 'alias', key: await idOf('many.com') } })
      expect(job.runAt.getTime() <= Date.now()).toBe(known < 250)
      await world.db.job.deleteMany({ where: { kind: 'alias' } })
    }
  })

  test('is queued again where it got lost', async () => {
    await newZone('lost.com', { '@': 'host.example.net' })
    found = { 'host.example.net': ['192.0.2.1'] }
    await run('lost.com')
    const domainId = await idOf('lost.com')
    await world.db.job.deleteMany({ where: { kind: 'alias' } })
    expect(await requeueOverdueAliases(world.db)).toBe(0)
    await world.db.aliasAnswer.updateMany({ where: { domainId }, data: { dueAt: new Date(Date.now() - 3_600_000) } })
    expect(await requeueOverdueAliases(world.db)).toBe(1)
    expect(await world.db.job.count({ where: { kind: 'alias', key: domainId } })).toBe(1)
  })
})
