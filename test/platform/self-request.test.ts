import { createServer } from 'node:http'
import type { AddressInfo, Server } from 'node:net'
import { createServer as createEncrypted } from 'node:tls'
import { afterEach, expect, test } from 'vitest'
import { createSelfRequest } from '../../src/platform/http/self-request.ts'

const servers: Server[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) await new Promise((resolve) => server.close(resolve))
})

async function listening<S extends Server>(server: S): Promise<S> {
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return server
}

test('a server answers once it has answered a request of its own, and is not asked again', async () => {
  let asked = 0
  let answers = false
  const server = createServer((_request, response) => {
    asked++
    if (answers) response.writeHead(404).end()
    else response.destroy()
  })
  const hasAnswered = createSelfRequest(server)
  expect(await hasAnswered()).toBe(false)
  await listening(server)
  expect(await hasAnswered()).toBe(false)
  answers = true
  expect(await hasAnswered()).toBe(true)
  expect(await hasAnswered()).toBe(true)
  expect(asked).toBe(2)
})

test('what another server answers at the same port does not count', async () => {
  const other = await listening(createServer((_request, response) => void response.end()))
  const silent = createServer()
  silent.address = () => other.address() as AddressInfo
  expect(await createSelfRequest(silent)()).toBe(false)
  expect(await createSelfRequest(other)()).toBe(true)
})

test('an encrypted server answers, even if it has no certificate to show', async () => {
  const server = await listening(createEncrypted({}))
  expect(await createSelfRequest(server, { encrypted: true })()).toBe(true)
  const plain = await listening(createServer())
  expect(await createSelfRequest(plain, { encrypted: true })()).toBe(false)
})
