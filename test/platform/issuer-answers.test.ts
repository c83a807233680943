// Issuers that answer with something that is no answer.
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { expect, test } from 'vitest'
import { createReach } from '../../src/platform/http/checked-lookup.ts'
import { createIssuerKeys, issuerRefusal } from '../../src/platform/secrets/issuer-keys.ts'

test.each([
  ['switches protocols', 'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: odd\r\n\r\n'],
  ['only announces an answer', 'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(50)],
])('an issuer that %s is unavailable, and no token waits for it', async (_what, answer) => {
  const issuer = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => socket.write(answer))
  })
  issuer.listen(0, '127.0.0.1')
  await once(issuer, 'listening')
  const now = Date.now() / 1000
  const claims = { iss: `http://127.0.0.1:${(issuer.address() as AddressInfo).port}`, exp: now + 60, iat: now }
  const token = { claims, alg: 'RS256', kid: null, signed: '', signature: Buffer.alloc(0) } as const
  const keys = createIssuerKeys({ production: false }, createReach({ webhookAllowPrivate: true, dnsResolvers: [] }))
  await expect(keys.verify(token)).rejects.toMatchObject({
    code: 'identity_provider_unavailable',
    cause: { message: expect.stringMatching(/switched protocols|before the real one/) },
  })
  issuer.close()
})

test.each(['127.0.0.1', '10.0.0.7', '169.254.169.254', '::1', 'fd00::1'])(
  'an issuer whose name resolves to %s is not asked',
  async (address) => {
    let connections = 0
    const issuer = createServer((socket) => {
      connections++
      socket.destroy()
    })
    issuer.listen(0, '127.0.0.1')
    await once(issuer, 'listening')
    const now = Date.now() / 1000
    const iss = `https://issuer.example:${(issuer.address() as AddressInfo).port}`
    const claims = { iss, exp: now + 60, iat: now }
    const token = { claims, alg: 'RS256', kid: null, signed: '', signature: Buffer.alloc(0) } as const
    const { mayReach } = createReach({ webhookAllowPrivate: false, dnsResolvers: [] })
    const resolve = async () => [{ address, family: address.includes(':') ? 6 : 4 }]
    await expect(createIssuerKeys({ production: true }, { mayReach, resolve }).verify(token)).rejects.toMatchObject({
      code: 'identity_provider_unavailable',
      cause: { name: 'AddressRefused' },
    })
    expect(connections).toBe(0)
    issuer.close()
  },
)

test.each([
  // In development and with WEBHOOK_ALLOW_PRIVATE, an issuer on the machine itself needs no TLS.
  ['http://127.0.0.1:8080', { production: false, webhookAllowPrivate: true }, true],
  ['http://[::1]:8080', { production: false, webhookAllowPrivate: true }, true],
  ['http://localhost:8080', { production: false, webhookAllowPrivate: true }, true],
  ['http://localhost:8080', { production: false, webhookAllowPrivate: false }, false],
  ['http://localhost:8080', { production: true, webhookAllowPrivate: true }, false],
  ['http://ci.internal', { production: false, webhookAllowPrivate: true }, false],
  ['http://127.example.com', { production: false, webhookAllowPrivate: true }, false],
  ['https://10.0.0.7', { production: true, webhookAllowPrivate: true }, true],
  ['https://10.0.0.7', { production: false, webhookAllowPrivate: false }, false],
  ['https://vm', { production: true, webhookAllowPrivate: true }, true],
  ['https://a.internal', { production: true, webhookAllowPrivate: true }, true],
  ['https://a.internal', { production: false, webhookAllowPrivate: false }, false],
  ['https://internal.example', { production: true, webhookAllowPrivate: false }, true],
  ['https://issuer.example', { production: true, webhookAllowPrivate: false }, true],
])('the issuer %s, with %j: accepted is %s', (issuer, { production, webhookAllowPrivate }, accepted) => {
  const reach = createReach({ webhookAllowPrivate, dnsResolvers: [] })
  expect(issuerRefusal(issuer, { production }, reach) === null).toBe(accepted)
})
