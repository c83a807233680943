// Signatures (RFC 8945) against those of kdig and dig, every way they can be wrong, and whatever else may come.
import { createHmac, randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { rcodes, typeNumbers } from '../../../../src/dns/packet/numbers.ts'
import { createSigner, readTsig, type Tsig, tsigErrors, verify } from '../../../../src/dns/packet/tsig.ts'
import { wireName } from '../../../../src/dns/packet/wire-names.ts'
import { until } from '../../../helpers/until.ts'
import { key, type Offline, question, row, startOffline, startSeconds } from './offline.ts'

const fromKdig =
  'c40101200001000000000001076578616d706c6503636f6d0000060001087472616e7366657205626572746804746573740000fa00ff' +
  '00000000003d0b686d61632d7368613235360000006af92876012c00208ed924844bcc9a0ccdc9bdbc113a0adf3fb8851d1360c46f5c71' +
  '94f01b73f02dc40100000000'
const fromDig =
  '1eed012000010000000000020562657274680474657374000006000100002904d000000000000c000a0008947be25daf8b379d08747261' +
  '6e7366657205626572746804746573740000fa00ff00000000003d0b686d61632d7368613235360000006af92877012c00203884102438' +
  '57c25bf24b5a7312523597566349e69337bca99389753975df73a31eed00000000'

function tsigOf(message: Buffer): Tsig {
  const tsig = readTsig(message)
  if (!tsig || tsig === 'malformed') throw new Error('there is no signature')
  return tsig
}

describe('a signature', () => {
  test.each([
    ['kdig', fromKdig],
    ['dig', fromDig],
  ])('of %s is good, and not after one changed bit', (_, hex) => {
    const message = Buffer.from(hex, 'hex')
    expect(verify(message, tsigOf(message), { key, nowSeconds: startSeconds })).toBe(tsigErrors.NONE)
    for (let bit = 16; bit < (tsigOf(message).start - 1) * 8; bit += 7) {
      const changed = Buffer.from(message)
      changed[bit >> 3]! ^= 1 << (bit & 7)
      const tsig = readTsig(changed)
      if (tsig && tsig !== 'malformed')
        expect(verify(changed, tsig, { key, nowSeconds: startSeconds })).not.toBe(tsigErrors.NONE)
    }
  })

  test('is over the original id, so a forwarder may change it', () => {
    const message = Buffer.from(fromKdig, 'hex')
    message.writeUInt16BE(0x0815, 0)
    expect(verify(message, tsigOf(message), { key, nowSeconds: startSeconds })).toBe(tsigErrors.NONE)
  })

  test('is good for 300 seconds before and after, whatever fudge it asks for', () => {
    const message = Buffer.from(fromKdig, 'hex')
    const { timeSigned } = tsigOf(message)
    for (const [offset, verdict] of [
      [300, tsigErrors.NONE],
      [-300, tsigErrors.NONE],
      [301, tsigErrors.BADTIME],
      [-301, tsigErrors.BADTIME],
    ] as const) {
      expect(verify(message, tsigOf(message), { key, nowSeconds: timeSigned + offset })).toBe(verdict)
    }
  })

  test('that was cut off is refused', () => {
    const message = createSigner(key, null, () => startSeconds)(question('a.test', typeNumbers.SOA))
    const tsig = tsigOf(message)
    expect(verify(message, { ...tsig, mac: tsig.mac.subarray(0, 16) }, { key, nowSeconds: startSeconds })).toBe(
      tsigErrors.BADTRUNC,
    )
    expect(verify(message, { ...tsig, mac: tsig.mac.subarray(0, 15) }, { key, nowSeconds: startSeconds })).toBe(
      'malformed',
    )
    expect(verify(message, { ...tsig, mac: Buffer.alloc(0) }, { key, nowSeconds: startSeconds })).toBe(
      tsigErrors.BADSIG,
    )
    expect(verify(message, { ...tsig, mac: Buffer.alloc(33) }, { key, nowSeconds: startSeconds })).toBe('malformed')
  })

  test('of each message in a row is over the one before, the message and the time', () => {
    const request = randomBytes(32)
    const sign = createSigner(key, request, () => startSeconds)
    const plain = question('row.test', typeNumbers.AXFR)
    const [first, second] = [tsigOf(sign(plain)), tsigOf(sign(plain))]
    const times = Buffer.from('00006af92876012c', 'hex')
    const variables = [wireName(key.name), '\0\xff\0\0\0\0', wireName('hmac-sha256')].join('')
    const expected = createHmac('sha256', key.secret)
      .update(Buffer.concat([Buffer.from([0, 32]), request, plain, Buffer.from(variables, 'latin1'), times]))
      .update(Buffer.alloc(4))
    expect(first.mac).toEqual(expected.digest())
    const next = createHmac('sha256', key.secret).update(Buffer.concat([Buffer.from([0, 32]), first.mac, plain, times]))
    expect(second.mac).toEqual(next.digest())
  })
})

describe('a request', () => {
  let offline: Offline
  const zone = 'zone.test'
  const axfr = question(zone, typeNumbers.AXFR)

  beforeAll(() => {
    offline = startOffline()
    offline.put([zone], [row(zone, 7, ['A 300 a 192.0.2.1', 'TXT 300 t "text"'])])
  })
  afterAll(() => offline.transfers.close())

  test('signed well gets an answer signed for it alone', async () => {
    const request = offline.signed(axfr)
    const [answer] = await offline.ask(request)
    expect(answer![3]! & 15).toBe(rcodes.NOERROR)
    expect(verify(answer!, tsigOf(answer!), { key, nowSeconds: startSeconds, prior: tsigOf(request).mac })).toBe(
      tsigErrors.NONE,
    )
    expect(verify(answer!, tsigOf(answer!), { key, nowSeconds: startSeconds, prior: randomBytes(32) })).toBe(
      tsigErrors.BADSIG,
    )
  })

  test('from another time gets BADTIME, signed, with our time', async () => {
    const request = offline.signed(axfr)
    offline.clock.seconds += 400
    const [answer] = await offline.ask(request)
    offline.clock.seconds -= 400
    const tsig = tsigOf(answer!)
    expect([answer![3]! & 15, tsig.error]).toEqual([rcodes.NOTAUTH, tsigErrors.BADTIME])
    expect(tsig.other.readUIntBE(0, 6)).toBe(startSeconds + 400)
    expect(tsig.timeSigned).toBe(startSeconds)
    expect(verify(answer!, tsig, { key, nowSeconds: startSeconds, prior: tsigOf(request).mac })).toBe(tsigErrors.NONE)
  })

  test('with another key or a wrong signature gets BADKEY or BADSIG, unsigned', async () => {
    for (const [wrong, error] of [
      [{ ...key, name: 'other.test' }, tsigErrors.BADKEY],
      [{ ...key, secret: Buffer.alloc(32) }, tsigErrors.BADSIG],
    ] as const) {
      const [answer] = await offline.ask(createSigner(wrong, null, () => startSeconds)(axfr))
      const tsig = tsigOf(answer!)
      expect([answer![3]! & 15, tsig.error, tsig.mac.length]).toEqual([rcodes.NOTAUTH, error, 0])
    }
  })

  test('without a signature is refused, and NOTIFY is not implemented', async () => {
    expect((await offline.ask(axfr))[0]![3]! & 15).toBe(rcodes.REFUSED)
    for (const notice of [question(zone, typeNumbers.SOA, 4), offline.signed(question(zone, typeNumbers.SOA, 4))]) {
      const [answer] = await offline.ask(notice, false)
      expect([answer![2]! & 0xf8, answer![3]! & 15]).toEqual([0xa0, rcodes.NOTIMP])
    }
  })

  test('for IXFR without a serial is FORMERR', async () => {
    const [answer] = await offline.ask(offline.signed(question(zone, typeNumbers.IXFR)))
    expect(answer![3]! & 15).toBe(rcodes.FORMERR)
  })

  test('for a claim below a name that another account has proved to own is NOTAUTH', async () => {
    const child = 'child.claimed.test'
    const rcode = async () => (await offline.ask(offline.signed(question(child, typeNumbers.AXFR))))[0]![3]! & 15
    offline.put([child], [{ ...row(child, 1), verified: false, accountId: 'acc_2' }])
    expect(await rcode()).toBe(rcodes.NOERROR)
    offline.put(['claimed.test'], [row('claimed.test', 1)])
    await until(async () => (await rcode()) === rcodes.NOTAUTH)
    offline.put(['claimed.test'], [])
    await until(async () => (await rcode()) === rcodes.NOERROR)
  })

  test('of 30,000 broken ones costs no exception, and over UDP never gets more than it sent', async () => {
    const seeds = [
      Buffer.from(fromDig, 'hex'),
      Buffer.from(fromKdig, 'hex'),
      offline.signed(axfr),
      offline.signed(question(zone, typeNumbers.SOA, 4)),
      question(zone, typeNumbers.SOA, 4),
    ]
    let state = 4711
    const random = (below: number) => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
      return Math.floor((state / 0x1_0000_0000) * below)
    }
    let [answered, swollen] = [0, 0]
    for (let index = 0; index < 30_000; index++) {
      let message = Buffer.from(seeds[index % seeds.length]!)
      for (let left = 1 + random(4); left > 0; left--) message[random(message.length)] = random(256)
      if (random(4) === 0) message = message.subarray(0, random(message.length + 1))
      readTsig(message)
      const tcp = random(2) === 0
      for (const answer of await offline.ask(message, tcp)) {
        answered++
        if (!tcp && answer.length > message.length) swollen++
      }
    }
    expect(swollen).toBe(0)
    expect(answered).toBeGreaterThan(1_000)
  })
})
