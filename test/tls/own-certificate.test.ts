import { once } from 'node:events'
import { request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { connect, type Server, type TLSSocket } from 'node:tls'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type App, buildApp } from '../../src/api/app.ts'
import { keepOwnCertificate } from '../../src/tls/own-certificate.ts'
import { tlsPolicy } from '../../src/tls/policy.ts'
import { type CertificateStore, createCertificateStore } from '../../src/tls/store.ts'
import { startApi, type TestApi } from '../helpers/api.ts'
import { until } from '../helpers/until.ts'
import { type Authority, createAuthority, storeCertificate } from './authority.ts'

let api: TestApi
let app: App
let authority: Authority
let certificates: CertificateStore
let port: number

beforeAll(async () => {
  api = await startApi({ DEPLOYMENT_DOMAIN: 'berth.test', BASE_URL: 'https://api.berth.test' })
  authority = await createAuthority()
  certificates = await createCertificateStore({ ...api.deps, platformOnly: true })
  app = await buildApp(api.deps, tlsPolicy)
  keepOwnCertificate(app.server as unknown as Server, certificates, api.config.managedTlsHost!, api.deps.log)
  await app.listen({ host: '127.0.0.1', port: 0 })
  port = (app.server.address() as AddressInfo).port
})
afterAll(async () => {
  app.server.closeAllConnections()
  await app.close()
  await certificates.close()
  await api.stop()
})

const target = () => ({ port, host: '127.0.0.1', ca: authority.rootPem })
const handshake = async (servername: string): Promise<TLSSocket> => {
  const socket = connect({ ...target(), servername })
  await once(socket, 'secureConnect')
  return socket
}
const serialAt = (servername: string) =>
  handshake(servername).then(
    (socket) => {
      const { serialNumber } = socket.getPeerCertificate()
      socket.destroy()
      return serialNumber
    },
    () => null,
  )

test('the API under a name of ours is served with the platform’s certificate as soon as there is one, and the next swaps in live', async () => {
  expect(await serialAt('api.berth.test')).toBeNull()
  await storeCertificate(api.db, api.deps.vault, await authority.issue(['berth.test', '*.berth.test']))
  const first = await until(() => serialAt('api.berth.test'))
  const open = await handshake('api.berth.test')

  const status = await new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${api.token}` }
    const options = { ...target(), servername: 'api.berth.test', path: '/api/projects', headers, agent: false as const }
    const sent = request(options, (response) => {
      response.resume()
      resolve([response.statusCode, response.headers['strict-transport-security']])
    })
    sent.on('error', reject).end()
  })
  expect(status).toEqual([200, 'max-age=63072000; includeSubDomains'])

  await storeCertificate(api.db, api.deps.vault, await authority.issue(['berth.test', '*.berth.test']))
  await until(async () => ![first, null].includes(await serialAt('api.berth.test')))
  open.write('GET /healthz HTTP/1.1\r\nHost: api.berth.test\r\nConnection: close\r\n\r\n')
  expect(Buffer.concat(await open.toArray()).toString()).toMatch(/^HTTP\/1.1 200 OK/)
})

test('a certificate that cannot be used leaves the one before in service', async () => {
  const before = await serialAt('api.berth.test')
  const broken = { ...(await authority.issue(['berth.test', '*.berth.test'])), chain: 'not a certificate' }
  await storeCertificate(api.db, api.deps.vault, broken)
  await until(() => certificates.pemOf('api.berth.test')?.cert.toString() === 'not a certificate')
  expect(await serialAt('api.berth.test')).toBe(before)
})
