import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createIssuer, type Issuer } from '../../../src/engines/certificates/issuer.ts'
import { startWorker, type Worker } from '../../../src/jobs/worker.ts'
import { until } from '../../helpers/until.ts'
import { type HttpsWorld, startHttpsWorld } from './https-world.ts'

let world: HttpsWorld
let issuer: Issuer
let worker: Worker
let ca: Buffer
beforeAll(async () => {
  world = await startHttpsWorld()
  const log = pino({ level: 'silent' })
  issuer = await createIssuer({ ...world, log })
  worker = startWorker(world.db, world.notifications, log, { issue: issuer.issue })
  await issuer.start()
  ca = await readFile(join(world.config.dataDir, 'ca/root.pem'))
  await world.site('hello', { 'index.html': 'hello' })
})
afterAll(async () => {
  await worker.stop()
  await issuer.close()
  await world.stop()
})

/** Who trusts the root in the data directory, and nobody else, comes through. */
const isTrusted = (host: string) =>
  world.handshake(host, { ca }).then(
    (socket) => {
      socket.destroy()
      return true
    },
    () => false,
  )

test('a verified domain is served over HTTPS with nobody’s help, and HTTP leads there from then on', async () => {
  await world.attach('hello', 'hello.test')
  await until(() => isTrusted('hello.test'))
  const { status, headers } = await world.get('hello.test', '/')
  expect([status, headers.location]).toEqual([308, `https://hello.test:${world.httpsPort}/`])
})

test('so are the hosts of projects and deployments, the new ones too', async () => {
  await until(() => isTrusted('hello.localhost'))
  const { host } = await world.deploy('hello', { 'index.html': 'preview' })
  await until(() => isTrusted(host))
})
