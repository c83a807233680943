// A zone with a key, and updates of it, made octet by octet and signed.
import { randomInt } from 'node:crypto'
import { pino } from 'pino'
import { createSigner, readTsig, type Tsig, type TsigKey, tsigErrors, verify } from '../../../../src/dns/packet/tsig.ts'
import { createTransfers } from '../../../../src/engines/nameserver/transfer/transfers.ts'
import { until } from '../../../helpers/until.ts'
import { framed, nameOctets, readMessage, sendTcp, sendUdp, types } from '../packets.ts'
import { startWorld, type World } from '../world.ts'

export const classes = { IN: 1, NONE: 254, ANY: 255 } as const

export type Part = {
  name: string
  type: string | number
  class?: keyof typeof classes | number
  ttl?: number
  data?: Buffer
}

export const textData = (...texts: string[]) =>
  Buffer.concat(texts.flatMap((text) => [Buffer.from([text.length]), Buffer.from(text, 'latin1')]))
export const addressData = (address: string) => Buffer.from(address.split('.').map(Number))
export const nameData = (name: string) => nameOctets(name)

export const add = (name: string, type: string | number, data: Buffer, ttl = 300): Part => ({ name, type, data, ttl })
export const addText = (name: string, text: string, ttl = 300) => add(name, 'TXT', textData(text), ttl)
export const addAddress = (name: string, address: string, ttl = 300) => add(name, 'A', addressData(address), ttl)
/** All of a name, all of a type, or one record. */
export const remove = (name: string, type = 'ANY', data?: Buffer): Part =>
  data ? { name, type, class: 'NONE', data } : { name, type, class: 'ANY' }
export const exists = (name: string, type = 'ANY', data?: Buffer): Part =>
  data ? { name, type, class: 'IN', ttl: 0, data } : { name, type, class: 'ANY' }
export const absent = (name: string, type = 'ANY'): Part => ({ name, type, class: 'NONE' })

function partOctets({ name, type, class: named = 'IN', ttl = 0, data = Buffer.alloc(0) }: Part): Buffer {
  const fixed = Buffer.alloc(10)
  fixed.writeUInt16BE(typeof type === 'number' ? type : types[type]!, 0)
  fixed.writeUInt16BE(typeof named === 'number' ? named : classes[named], 2)
  fixed.writeUInt32BE(ttl, 4)
  fixed.writeUInt16BE(data.length, 8)
  return Buffer.concat([nameOctets(name), fixed, data])
}

export type Message = { prerequisites?: Part[]; updates?: Part[]; zoneType?: number; zoneClass?: number }

export function updateMessage(zone: string, { prerequisites = [], updates = [], ...rest }: Message = {}): Buffer {
  const header = Buffer.alloc(12)
  header.writeUInt16BE(randomInt(0x10000), 0)
  header[2] = 5 << 3
  for (const [index, count] of [1, prerequisites.length, updates.length].entries()) {
    header.writeUInt16BE(count, 4 + index * 2)
  }
  const tail = Buffer.alloc(4)
  tail.writeUInt16BE(rest.zoneType ?? 6, 0)
  tail.writeUInt16BE(rest.zoneClass ?? 1, 2)
  return Buffer.concat([header, nameOctets(zone), tail, ...[...prerequisites, ...updates].map(partOctets)])
}

export type Key = TsigKey & { id: string; zone: string }

export const nowSeconds = () => Math.floor(Date.now() / 1000)
export const sign = (key: TsigKey, message: Buffer, time = nowSeconds()) => createSigner(key, null, () => time)(message)

const rcodeNames: Record<string, string> = { 6: 'YXDOMAIN', 7: 'YXRRSET', 8: 'NXRRSET', 9: 'NOTAUTH', 10: 'NOTZONE' }

export function rcodeOf(answer: Buffer): string {
  const { rcode } = readMessage(answer)
  return rcodeNames[rcode] ?? rcode
}

export type UpdateWorld = World & {
  newKey(zone: string, body?: object, token?: string): Promise<Key>
  /** The code of the answer, whose signature was checked. */
  update(key: Key, message: Message & { zone?: string; tcp?: boolean }): Promise<string>
  /** Records of a zone as `name type value`, sorted. */
  recordsOf(zone: string): Promise<string[]>
}

export async function startUpdates(
  environment: Record<string, string> = {},
  options: Parameters<typeof startWorld>[0] = {},
): Promise<UpdateWorld> {
  const log = pino({ level: 'silent' })
  const world = await startWorld(
    {
      // Signed questions are theirs: nsupdate asks so for the zone.
      transfers: (snapshot, outside, keys) =>
        createTransfers({ snapshot, outside, keys, key: null, secondaries: [], log }),
      ...options,
    },
    environment,
  )
  const port = () => world.ports[0]!

  async function update(key: Key, { zone = key.zone, tcp = false, ...message }: Parameters<UpdateWorld['update']>[1]) {
    const request = sign(key, updateMessage(zone, message))
    const [answer] = tcp ? await sendTcp(port(), framed(request)) : [await sendUdp(port(), request)]
    if (!answer) throw new Error('no answer')
    const prior = (readTsig(request) as Tsig).mac
    const signature = readTsig(answer) as Tsig
    const verdict = verify(answer, signature, { key, nowSeconds: nowSeconds(), prior })
    if (verdict !== tsigErrors.NONE) throw new Error(`the answer is not signed: ${verdict}, ${rcodeOf(answer)}`)
    return rcodeOf(answer)
  }

  return {
    ...world,
    update,
    async newKey(zone, body = {}, token = world.token) {
      const made = await world.call('POST', `/dns/${zone}/keys`, {
        token,
        body: { name: `k${randomInt(1e9)}`, ...body },
      })
      if (made.status !== 201) throw new Error(made.text)
      const { id, keyName: name, secret } = made.body
      const key = { id, name, secret: Buffer.from(secret, 'base64'), zone }
      // The nameserver hears of it a moment later.
      await until(async () => rcodeOf((await sendUdp(port(), sign(key, updateMessage(zone))))!) !== 'NOTAUTH')
      return key
    },
    async recordsOf(zone) {
      const rows = await world.db.dnsRecord.findMany({ where: { domain: { name: zone } } })
      return rows.map(({ name, type, value }) => `${name} ${type} ${value}`).sort()
    },
  }
}
