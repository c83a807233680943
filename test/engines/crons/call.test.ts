import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { CallFailed, callProduction } from '../../../src/engines/crons/call.ts'
import { edgeEndpoints } from '../../../src/engines/crons/edge-endpoints.ts'
import { type Authority, createAuthority } from '../../tls/authority.ts'

let directory: string
let authority: Authority
let caFile: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-crons-'))
  authority = await createAuthority()
  caFile = join(directory, 'ca.pem')
  await writeFile(caFile, authority.rootPem)
})
afterAll(() => rm(directory, { recursive: true, force: true }))

const acme = (file: string | null) => ({ directoryUrl: 'https://ca.example', email: null, caFile: file, eab: null })
const edgeAt = (httpsPort: number, addresses: string[]) => ({
  httpPort: 1,
  httpsPort,
  domain: 'apps.example.com',
  addresses,
})

test('production is asked by HTTPS alone, at an edge elsewhere if there is none here, and its certificate is checked', async () => {
  const { chain, key } = await authority.issue(['site.apps.example.com'])
  const asked: (string | undefined)[] = []
  const server = createServer({ cert: chain, key }, ({ headers }, response) => {
    asked.push(headers.host)
    response.writeHead(204).end()
  })
  // Nobody listens there on the machine's own address.
  server.listen(0, '127.0.0.3')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const edge = edgeAt(port, ['127.0.0.3'])
  const place = { production: true, host: '127.0.0.2', edge }
  const call = async (file: string | null, host: string) => {
    const places = await edgeEndpoints({ ...place, acme: acme(file) })(null as never)
    // The usual port of this machine is nobody's business here.
    const addresses = places.addresses.filter((one) => one.port === port)
    return callProduction({ ...places, addresses }, { path: '/', headers: { host } }, AbortSignal.timeout(20_000))
  }
  expect(await call(caFile, 'site.apps.example.com')).toEqual({ status: 204, ended: true })
  await expect(call(caFile, 'other.apps.example.com')).rejects.toThrow(CallFailed)
  await expect(call(null, 'site.apps.example.com')).rejects.toThrow(CallFailed)
  expect(asked).toEqual(['site.apps.example.com'])
  server.closeAllConnections()
  server.close()
})

test('outside production an edge is asked by HTTP, on this machine first', async () => {
  const place = { production: false, host: '0.0.0.0', edge: edgeAt(2, ['192.0.2.1']), acme: null }
  expect(await edgeEndpoints(place)(null as never)).toEqual({
    addresses: [
      { host: '127.0.0.1', port: 1 },
      { host: '192.0.2.1', port: 1 },
    ],
    ca: null,
  })
})
