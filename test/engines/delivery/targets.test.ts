import { createSocket, type Socket } from 'node:dgram'
import { SubjectAlternativeNameExtension, X509CertificateGenerator } from '@peculiar/x509'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createSender } from '../../../src/engines/delivery/sender.ts'
import { createResolve } from '../../../src/platform/http/checked-lookup.ts'
import { isPublicAddress } from '../../../src/platform/http/public-address.ts'
import { answers, type Receiver, startReceiver } from './receiver.ts'

const message = { body: '{}', headers: { 'content-type': 'application/json' } }
const privateText = 'the address is private or local, where webhooks must not point'

/** A name server that answers every A question with the next of its addresses: what rebinding does. */
let nameserver: Socket
let addresses: string[] = []
let asked = 0
let resolver = ''
let receiver: Receiver
beforeAll(async () => {
  nameserver = createSocket('udp4', (packet, { port, address }) => {
    const nameEnd = packet.indexOf(0, 12)
    const isA = packet.readUInt16BE(nameEnd + 1) === 1
    const question = packet.subarray(12, nameEnd + 5)
    const head = Buffer.from([packet[0]!, packet[1]!, 0x81, 0x80, 0, 1, 0, isA ? 1 : 0, 0, 0, 0, 0])
    const next = isA ? addresses[Math.min(asked++, addresses.length - 1)]! : ''
    const record = isA ? [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...next.split('.').map(Number)] : []
    nameserver.send(Buffer.concat([head, question, Buffer.from(record)]), port, address)
  })
  await new Promise<void>((resolve) => nameserver.bind(0, '127.0.0.1', resolve))
  resolver = `127.0.0.1:${nameserver.address().port}`
  receiver = await startReceiver()
})
afterAll(async () => {
  nameserver.close()
  await receiver.close()
})

const sender = (mayReach = isPublicAddress) =>
  createSender({ mayReach, resolve: createResolve([resolver]), timeoutMs: 2_000 })
// Stands for a public address in tests that connect, which must not leave this machine.
const asPublic = '127.0.0.2'
const mayReach = (address: string) => address === asPublic

describe('a target', () => {
  test.each([
    '127.0.0.1',
    '127.255.0.9',
    '10.0.0.1',
    '172.16.5.5',
    '192.168.1.1',
    '169.254.169.254',
    '100.64.0.1',
    '0.0.0.0',
    '224.0.0.1',
    '255.255.255.255',
    '168.63.129.16',
  ])('whose name resolves to %s is refused before anything is connected', async (address) => {
    addresses = [address]
    const outcome = await sender().send(`http://hook.example:${receiver.port}/`, message)
    expect(outcome).toMatchObject({ status: null, error: privateText })
    expect(receiver.connections).toBe(0)
  })

  test.each([
    '127.0.0.1',
    '[::1]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[64:ff9b::7f00:1]',
    '[fe80::1]',
    '[fd00::1]',
    '[ff02::1]',
    '[::]',
    '0x7f.1',
    '2130706433',
  ])('of the address %s is refused, though no name is looked up', async (host) => {
    const outcome = await sender().send(`http://${host}:${receiver.port}/`, message)
    expect(outcome).toMatchObject({ status: null, error: privateText })
    expect(receiver.connections).toBe(0)
  })

  test('that was public when it was checked, and private a moment later, is not reached: there is one look-up', async () => {
    asked = 0
    // Whoever asked again for the connection would be led to the receiver.
    addresses = [asPublic, '127.0.0.1']
    const outcome = await sender(mayReach).send(`http://hook.example:${receiver.port}/`, message)
    expect(outcome).toMatchObject({ status: null, error: 'the connection was refused' })
    expect(asked).toBe(1)
    expect(receiver.connections).toBe(0)
  })

  test('is checked again when it is connected, whatever the look-up said', async () => {
    let reads = 0
    // An address that passes the check but leads elsewhere, as a network's own translation may do.
    const lying = Object.defineProperty({ family: 4 }, 'address', {
      get: () => (reads++ === 0 ? asPublic : '127.0.0.1'),
    })
    const misled = createSender({ mayReach, resolve: async () => [lying as never], timeoutMs: 2_000 })
    const outcome = await misled.send(`http://hook.example:${receiver.port}/`, message)
    expect(outcome).toMatchObject({ status: null, error: privateText })
    expect(receiver.received).toEqual([])
    misled.close()
  })

  test('on a closed network is reached where that is allowed', async () => {
    addresses = ['127.0.0.1']
    const allowing = sender(() => true)
    expect(await allowing.send(`http://hook.example:${receiver.port}/`, message)).toMatchObject({
      status: 204,
      error: null,
    })
    allowing.close()
  })

  test('whose name does not resolve is told so', async () => {
    const resolve = () => Promise.reject(Object.assign(new Error('queryA ENOTFOUND'), { code: 'ENOTFOUND' }))
    const outcome = await createSender({ mayReach, resolve }).send('http://nowhere.example/', message)
    expect(outcome!.error).toBe('the host name does not resolve')
  })
})

describe('a kept connection', () => {
  test('is used again, and one that the receiver had closed meanwhile costs no attempt', async () => {
    addresses = ['127.0.0.1']
    const seen = new Map<object, number>()
    const own = await startReceiver((response, request) => {
      const count = (seen.get(request.socket) ?? 0) + 1
      seen.set(request.socket, count)
      // What a receiver does whose own patience ended just before the third request came.
      if (count === 3) request.socket.destroy()
      else response.writeHead(204).end()
    })
    const keeping = sender(() => true)
    for (let n = 0; n < 3; n++) {
      expect(await keeping.send(`http://hook.example:${own.port}/`, message)).toMatchObject({
        status: 204,
        error: null,
      })
    }
    expect(own.connections).toBe(2)
    keeping.close()
    await own.close()
  })
})

describe('over TLS', () => {
  let secure: Receiver
  let cert = ''
  beforeAll(async () => {
    const made = await selfSigned('hook.example')
    cert = made.cert
    secure = await startReceiver(answers(200, {}, 'ok'), made)
    addresses = ['127.0.0.1']
  })
  afterAll(() => secure.close())
  const via = (name: string, ca?: string) => {
    const one = createSender({ mayReach: () => true, resolve: createResolve([resolver]), ca })
    return one.send(`https://${name}:${secure.port}/`, message).finally(() => one.close())
  }

  test('a certificate of an unknown authority or for another name is refused, and the log says so', async () => {
    expect((await via('hook.example'))!.error).toMatch(/self-signed/i)
    expect((await via('other.example', cert))!.error).toMatch(/does not match/i)
    expect(secure.received).toEqual([])
  })

  test('a good certificate is accepted', async () => {
    expect(await via('hook.example', cert)).toMatchObject({ status: 200, body: 'ok', error: null })
  })
})

async function selfSigned(name: string): Promise<{ key: string; cert: string }> {
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
  const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  const cert = await X509CertificateGenerator.createSelfSigned({
    name: `CN=${name}`,
    keys,
    signingAlgorithm: algorithm,
    notBefore: new Date(Date.now() - 60_000),
    notAfter: new Date(Date.now() + 3_600_000),
    extensions: [new SubjectAlternativeNameExtension([{ type: 'dns', value: name }])],
  })
  const der = Buffer.from(await crypto.subtle.exportKey('pkcs8', keys.privateKey)).toString('base64')
  return { key: `-----BEGIN PRIVATE KEY-----\n${der}\n-----END PRIVATE KEY-----\n`, cert: cert.toString('pem') }
}
