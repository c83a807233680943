// Issuers that answer with something that is no answer.
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { expect, test } from 'vitest'
import { createReach } from '../../src/platform/checked-lookup.ts'
import { createIssuerKeys } from '../../src/platform/issuer-keys.ts'

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
