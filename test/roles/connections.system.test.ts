// One address that opens as many connections as it can, to a process with API and edge.
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { createDatabase } from '../helpers/database.ts'
import { type Program, startProgram } from '../helpers/program.ts'
import { until } from '../helpers/until.ts'

const maxFiles = 400
const database = await createDatabase()
const dataDir = await mkdtemp(join(tmpdir(), 'berth-connections-'))
let program: Program | undefined
afterAll(async () => {
  await program?.stop()
  await database.drop()
  await rm(dataDir, { recursive: true, force: true })
})

test('API and edge answer others, whichever of them it hogs', async () => {
  const environment = { DATABASE_URL: database.url, DATA_DIR: dataDir }
  program = await startProgram('api,edge', environment, undefined, maxFiles)
  await program.ready()
  const { PORT, EDGE_HTTP_PORT } = program.ports
  for (const hogged of [PORT, EDGE_HTTP_PORT]) {
    const opened = new Set<Socket>()
    for (let n = 0; n < 2 * maxFiles; n++) {
      const socket = connect({ port: hogged, host: '127.0.0.1', localAddress: '127.0.0.2' })
      opened.add(socket)
      socket.on('error', () => {}).on('close', () => opened.delete(socket))
    }
    // Clients have half of the files, and one address at most half of these.
    await until(() => opened.size <= maxFiles / 4)
    for (const port of [PORT, EDGE_HTTP_PORT]) {
      expect((await fetch(`http://127.0.0.1:${port}/`)).status).toBeLessThan(500)
    }
    for (const socket of opened) socket.destroy()
    await until(() => opened.size === 0)
  }
})
