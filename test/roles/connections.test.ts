// One address that opens as many connections as it can, to a process with API and edge.
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { loadConfig } from '../../src/config.ts'
import { run } from '../../src/roles/run.ts'
import { createDatabase } from '../helpers/database.ts'
import { freePort } from '../helpers/ports.ts'
import { until } from '../helpers/until.ts'

const most = 40
vi.mock('../../src/platform/connection-shares.ts', async (original) => {
  const real = await original<typeof import('../../src/platform/connection-shares.ts')>()
  return { ...real, createConnectionShares: () => real.createConnectionShares(most) }
})

test('API and edge answer others, whichever of them it hogs', async () => {
  const database = await createDatabase()
  const dataDir = await mkdtemp(join(tmpdir(), 'berth-connections-'))
  const ports = { api: await freePort(), edge: await freePort() }
  const config = loadConfig({
    DATABASE_URL: database.url,
    DATA_DIR: dataDir,
    PATH: process.env.PATH,
    PORT: String(ports.api),
    METRICS_PORT: String(await freePort()),
    EDGE_HTTP_PORT: String(ports.edge),
    EDGE_HTTPS_PORT: String(await freePort()),
    LOG_LEVEL: 'silent',
  })
  const berth = await run(config, ['api', 'edge'])
  const opened = new Set<Socket>()
  for (const hogged of Object.values(ports)) {
    for (let n = 0; n < 2 * most; n++) {
      const socket = connect({ port: hogged, host: '127.0.0.1', localAddress: '127.0.0.2' })
      opened.add(socket)
      socket.on('error', () => {}).on('close', () => opened.delete(socket))
    }
    await until(() => opened.size <= most / 2)
    for (const port of Object.values(ports)) expect((await fetch(`http://127.0.0.1:${port}/`)).status).toBeLessThan(500)
    for (const socket of opened) socket.destroy()
    await until(() => opened.size === 0)
  }
  await berth.stop()
  await database.drop()
  await rm(dataDir, { recursive: true, force: true })
})
