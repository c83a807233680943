// What is remembered of changes and for how long, the serial of the catalog, and telling the secondaries.
import { createSocket, type Socket } from 'node:dgram'
import * as fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import { createSigner, readTsig, type Tsig } from '../../../../src/dns/packet/tsig.ts'
import { textName, wireName } from '../../../../src/dns/packet/wire-names.ts'
import { createCatalog } from '../../../../src/engines/nameserver/transfer/catalog.ts'
import {
  createJournal,
  type Difference,
  isNewer,
  knownStep,
  type Step,
} from '../../../../src/engines/nameserver/transfer/journal.ts'
import { createNotifier, type Notifier } from '../../../../src/engines/nameserver/transfer/notify.ts'
import { differenceOf, soaOf, stepBetween } from '../../../../src/engines/nameserver/transfer/records.ts'
import { differencesOf } from '../../../../src/engines/nameserver/transfer/versions.ts'
import { changedNames, linesNamed, linesTyped, nameOf } from '../../../../src/engines/nameserver/zones/changed-lines.ts'
import type { OutsideAddresses } from '../../../../src/engines/nameserver/zones/lookup.ts'
import { ZoneTable } from '../../../../src/engines/nameserver/zones/zone-table.ts'
import { until } from '../../../helpers/until.ts'
import { key, nowhere, row, silent, startOffline, startSeconds } from './offline.ts'

const soa = { type: 6, ttl: 0, rdatas: [] }
const step = (from: number, records = 0): Step =>
  knownStep({
    from,
    to: from + 1,
    fromSoa: soa,
    toSoa: soa,
    removed: Array.from({ length: records }, () => ({ owner: '\0', set: soa })),
    added: [],
  })

describe('the journal', () => {
  test('keeps the last versions of a zone, and forgets what no longer leads to the newest', () => {
    const journal = createJournal(3)
    for (const from of [1, 2, 3, 4]) journal.add('a', step(from))
    expect(journal.since('a', 1)).toBeNull()
    expect(journal.since('a', 2)?.map(({ to }) => to)).toEqual([3, 4, 5])
    journal.add('a', step(9))
    expect(journal.since('a', 4)).toBeNull()
    expect(journal.since('a', 9)?.length).toBe(1)
  })

  test('forgets the zones that have not changed for longest, when it is full', () => {
    const journal = createJournal(20, 100)
    for (const zone of ['a', 'b', 'a', 'c', 'd']) journal.add(zone, step(journal.since(zone, 1) ? 2 : 1, 20))
    expect(journal.since('b', 1)).toBeNull()
    expect(journal.since('a', 1)?.length).toBe(2)
    for (let zone = 0; zone < 1_000; zone++) journal.add(`z${zone}`, step(1, 10))
    expect(journal.records).toBeLessThanOrEqual(100)
    journal.add('huge', step(1, 1_000))
    expect(journal.records).toBe(0)
  })

  test('asks a change for what differs when a secondary does, and has no answer where that is unknown', async () => {
    const journal = createJournal()
    let asked = 0
    const known = step(2).difference()
    const difference = () => {
      asked++
      return known
    }
    journal.add('a', { from: 1, to: 2, weight: 2, difference: () => null })
    journal.add('a', { from: 2, to: 3, weight: 2, difference })
    expect(asked).toBe(0)
    expect(await differencesOf(journal.since('a', 2)!)).toEqual([known])
    expect(asked).toBe(1)
    expect(await differencesOf(journal.since('a', 1)!)).toBeNull()
  })

  test('orders serials on a circle', () => {
    expect([isNewer(2, 1), isNewer(1, 1), isNewer(1, 2), isNewer(1, 0xffffffff)]).toEqual([true, false, false, true])
  })
})

describe('a difference', () => {
  test('has the whole set where its ttl changed, and nothing of other names', () => {
    const offline = startOffline()
    const at = (serial: number, records: string[]) => {
      offline.put(['d.test'], [row('d.test', serial, records)])
      return offline.table.get('d.test')!
    }
    const before = at(1, ['A 300 a 192.0.2.1', 'A 300 a 192.0.2.2', 'A 300 b 192.0.2.3', 'TXT 300 c "x"'])
    const after = at(2, ['A 60 a 192.0.2.1', 'A 300 a 192.0.2.2', 'A 300 b 192.0.2.3'])
    const { removed, added } = differenceOf(offline.table, before, after, nowhere)!
    const shown = (all: typeof added) => all.map(({ owner, set }) => `${textName(owner)} ${set.type} ${set.ttl}`)
    expect(shown(removed)).toEqual(['a.d.test 1 300', 'a.d.test 1 300', 'c.d.test 16 300'])
    expect(shown(added)).toEqual(['a.d.test 1 60', 'a.d.test 1 60'])
    return offline.transfers.close()
  })

  test('that is asked for later is the one of then', () => {
    const offline = startOffline()
    const put = (serial: number, records: string[]) => {
      offline.put(['d.test'], [row('d.test', serial, records)])
      return offline.table.get('d.test')!
    }
    const versions = [put(1, ['A 300 a 192.0.2.1']), put(2, ['A 300 a 192.0.2.2']), put(3, ['TXT 60 a "x"'])]
    const step = (at: number) => stepBetween(offline.table, versions[at]!, versions[at + 1]!, nowhere)!
    const steps = [step(0), step(1)]
    const wanted = [0, 1].map((at) => differenceOf(offline.table, versions[at]!, versions[at + 1]!, nowhere))
    put(4, [])
    offline.put(['d.test'], [])
    expect(steps.map((one) => one.difference())).toEqual(wanted)
    expect(steps.map(({ from, to }) => [from, to])).toEqual([
      [1, 2],
      [2, 3],
    ])
    expect(steps[0]!.difference()).toBe(steps[0]!.difference())
    return offline.transfers.close()
  })

  test('with an ALIAS is found at once, because its addresses may be others later', () => {
    const offline = startOffline()
    const put = (serial: number, records: string[]) => {
      offline.put(['d.test'], [row('d.test', serial, records)])
      return offline.table.get('d.test')!
    }
    const edge = { known: true }
    const around: OutsideAddresses = {
      edge: () => {
        if (!edge.known) throw new Error('asked too late')
        return null
      },
    }
    const [before, after] = [
      put(1, ['ALIAS 60 a outside.test']),
      put(2, ['ALIAS 60 a outside.test', 'A 60 b 192.0.2.1']),
    ]
    const one = stepBetween(offline.table, before, after, around)
    edge.known = false
    expect(one?.difference()?.added.length).toBe(1)
    return offline.transfers.close()
  })

  test('of any two texts is found in them as it is line by line', () => {
    const line = fc
      .tuple(
        fc.constantFrom('A', 'ALIAS', 'TXT'),
        fc.constantFrom('@', 'www', 'a', 'aa', 'b'),
        fc.constantFrom('a', ' aa b', '@ x'),
      )
      .map(([type, name, value]) => `${type} 60 ${name} ${value}`)
    const text = fc.uniqueArray(line, { maxLength: 12 })
    fc.assert(
      fc.property(text, text, fc.uniqueArray(line, { maxLength: 60 }), (first, second, more) => {
        const common = more.filter((one) => !first.includes(one) && !second.includes(one))
        const [before, after] = [first, second].map((own) => [...own.slice(0, 3), ...common, ...own.slice(3)])
        const [old, new_] = [before!.join('\n'), after!.join('\n')]
        const names = [...before!, ...after!]
          .filter((one) => !before!.includes(one) || !after!.includes(one))
          .map(nameOf)
        expect(changedNames(old, new_)).toEqual(new Set(names))
        const wanted = new Set(names.slice(0, 2))
        expect(linesNamed(old, wanted).sort()).toEqual(before!.filter((one) => wanted.has(nameOf(one))).sort())
        expect([...linesTyped(old, 'ALIAS')]).toEqual(before!.filter((one) => one.startsWith('ALIAS ')))
      }),
      { numRuns: 2_000 },
    )
  })
})

describe('the serial of the catalog', () => {
  test('grows with every change, never far from the clock, and is not behind after a restart', async () => {
    const served = new Map()
    let seconds = startSeconds
    let asked = 0
    const steps: Difference[] = []
    const first = createCatalog(
      served,
      (one) => steps.push(one.difference()!),
      () => {
        asked++
        return seconds
      },
    )
    const begun = first.serial
    seconds += 5
    const table = new ZoneTable({ nameservers: [], soa: () => ({}) as never, generated: () => [] }, () => {})
    for (let index = 0; index < 5; index++) {
      table.apply([], [row(`z${index}.test`, 1)])
      served.set(`z${index}`, table.get(`z${index}.test`))
      first.touch(`z${index}`)
      await until(() => steps.length === index + 1)
    }
    expect(steps.map(({ to }) => to - begun)).toEqual([1, 2, 3, 4, 5])
    // No faster than the clock in the long run, for another start must not be behind.
    served.delete('z0')
    first.touch('z0')
    // It looks at the clock again and again, and goes on waiting.
    const before = asked
    await until(() => asked > before + 4)
    expect(steps.length).toBe(5)
    seconds += 1
    await until(() => steps.length === 6)
    expect(steps[5]!.removed.length).toBe(1)
    first.close()
    const second = createCatalog(
      served,
      () => {},
      () => seconds + 1,
    )
    expect(second.serial).toBeGreaterThan(first.serial)
    expect([...second.records()]).toHaveLength(2 + 4)
    // What did not change is no new version.
    first.touch('z1')
    second.close()
    first.close()
  })
})

describe('NOTIFY', () => {
  const open: { close(): unknown }[] = []
  afterEach(async () => {
    for (const one of open.splice(0).reverse()) await one.close()
  })

  async function secondary(onNotice: (message: Buffer, answer: (rcode?: number) => void) => void): Promise<number> {
    const socket: Socket = createSocket('udp4')
    open.push(socket)
    await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve))
    socket.on('message', (message, peer) =>
      onNotice(message, (rcode = 0) => {
        const tsig = readTsig(message) as Tsig
        const plain = Buffer.from(message.subarray(0, tsig.start))
        plain[2]! |= 0x80
        plain[3] = rcode
        plain.writeUInt16BE(plain.readUInt16BE(10) - 1, 10)
        socket.send(createSigner(key, tsig.mac, () => startSeconds)(plain), peer.port, peer.address)
      }),
    )
    return socket.address().port
  }

  function notifier(ports: number[], ended: string[] = []): Told {
    const { table, put, transfers } = startOffline()
    put(['n.test'], [row('n.test', 5)])
    open.push(transfers)
    const made = createNotifier({
      soaOf: (origin) => (origin.endsWith('\0') ? soaOf(table, table.get('n.test')!) : null),
      onEnd: (result, tries) => ended.push(`${result} ${tries}`),
      log: silent,
      now: () => startSeconds,
      retryDelaysMs: [20, 30, 40],
    })
    return toAll(made, ports)
  }

  type Told = Pick<Notifier, 'open'> & { notify(origin: string): void }

  function toAll(made: Notifier, ports: number[]): Told {
    open.push(made)
    const secondaries = ports.map((port) => ({ address: `127.0.0.1:${port}`, host: '127.0.0.1', port, key }))
    return {
      get open() {
        return made.open
      },
      notify(origin) {
        for (const secondary of secondaries) made.notify(origin, secondary)
      },
    }
  }

  test('is repeated until it is acknowledged, and given up at the end of the table', async () => {
    let [seen, silentSeen] = [0, 0]
    const third = await secondary((_, answer) => ++seen === 3 && answer())
    const never = await secondary(() => silentSeen++)
    const ended: string[] = []
    const made = notifier([third, never], ended)
    made.notify(wireName('n.test'))
    await until(() => ended.length === 2)
    expect(ended).toEqual(['acknowledged 3', 'lost 4'])
    expect([seen, silentSeen, made.open]).toEqual([3, 4, 0])
  })

  test('of many changes is two: the first at once, and one for the rest', async () => {
    let seen = 0
    const port = await secondary((_, answer) => {
      seen++
      answer()
    })
    const made = createSpaced(port)
    for (let index = 0; index < 50; index++) made.notify(wireName('n.test'))
    await until(() => made.open === 0)
    expect(seen).toBe(2)
  })

  function createSpaced(port: number): Told {
    const made = createNotifier({ soaOf: () => soa, onEnd: () => {}, log: silent, now: () => startSeconds })
    return toAll(made, [port])
  }

  test('is not ended by an answer that is not signed, or by noise', async () => {
    const ended: string[] = []
    const socket: Socket = createSocket('udp4')
    open.push(socket)
    await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve))
    socket.on('message', (message, peer) => {
      const plain = Buffer.from(message)
      plain[2]! |= 0x80
      for (const one of [plain, plain.subarray(0, 20), Buffer.alloc(0), message]) {
        socket.send(one, peer.port, peer.address)
      }
    })
    notifier([socket.address().port], ended).notify(wireName('n.test'))
    await until(() => ended.length === 1)
    expect(ended).toEqual(['lost 4'])
  })

  test('of thousands of zones is sent to all, some at a time', async () => {
    const names = new Set<string>()
    const port = await secondary((message, answer) => {
      names.add(message.toString('latin1', 12, 20))
      answer()
    })
    const made = createSpaced(port)
    for (let index = 0; index < 1_000; index++) made.notify(wireName(`${1_000 + index}.t`))
    expect(made.open).toBe(1_000)
    await until(() => made.open === 0)
    expect(names.size).toBe(1_000)
  })
})
