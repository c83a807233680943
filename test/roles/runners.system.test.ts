// Runners and edges as processes of their own: killed, hung, and without a database.
import { writeFile } from 'node:fs/promises'
import { get } from 'node:http'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { createSnapshots } from '../../src/platform/database/snapshots.ts'
import { createVault } from '../../src/platform/secrets/secrets.ts'
import { type World as EdgeWorld, startWorld } from '../engines/edge/world.ts'
import { isAlive, serverFiles } from '../engines/servers/cluster.ts'
import { type Link, openLink } from '../helpers/link.ts'
import { freePort } from '../helpers/ports.ts'
import { type Program, startProgram } from '../helpers/program.ts'
import { until } from '../helpers/until.ts'

vi.setConfig({ testTimeout: 240_000 })

let world: EdgeWorld
let link: Link
const running: Program[] = []

beforeAll(async () => {
  world = await startWorld()
  link = await openLink(world.databaseUrl)
})
afterEach(async () => {
  for (const { child, stop } of running.splice(0)) {
    child.kill('SIGCONT')
    if (child.exitCode === null && child.signalCode === null) await stop('SIGKILL')
  }
})
afterAll(async () => {
  link.close()
  await world.stop()
})

async function start(
  roles: string,
  environment: Record<string, string> = {},
  ports?: Program['ports'],
): Promise<Program> {
  const shared = {
    DATABASE_URL: link.url,
    DATA_DIR: world.config.dataDir,
    SECRETS_KEY: Buffer.alloc(32, 7).toString('base64'),
  }
  const program = await startProgram(roles, { ...shared, ...environment }, ports)
  running.push(program)
  return program
}

test('api, edge and nameserver start where there is no sandbox; worker and runner say what is missing', async () => {
  const without = { BUILD_SANDBOX: 'bubblewrap', PATH: '/nowhere' }
  const [served, ...refused] = await Promise.all(
    ['api,edge,nameserver', 'worker', 'runner'].map((roles) => start(roles, without)),
  )
  await served!.ready()
  for (const { child, output } of refused) {
    await until(() => child.exitCode !== null, 90_000)
    expect(child.exitCode).toBe(1)
    expect(output()).toMatch(/^berth: .*bubblewrap/m)
  }
})

function visit({ ports }: Program, host: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const sent = get(
      { host: '127.0.0.1', port: ports.EDGE_HTTP_PORT, headers: { host }, agent: false },
      async (answer) => resolve(`${answer.statusCode} ${Buffer.concat(await answer.toArray())}`),
    )
    sent.on('error', reject)
  })
}

test('a runner that hangs or is killed is replaced, and no visitor sees a failure', async () => {
  const byPort = new Map<string, Program>()
  for (let n = 0; n < 2; n++) {
    const address = `127.0.0.1:${await freePort()}`
    byPort.set(address, await start('runner', { RUNNER_LISTEN: address }))
  }
  const edge = await start('edge')
  for (const program of running) await program.ready()
  await world.newProject('marked')
  await world.db.project.updateMany({ data: { framework: 'node' } })
  const { id } = await world.deploy('marked', {}, { kind: 'node', production: true, ready: false })
  for (const [name, text] of Object.entries(serverFiles)) {
    await writeFile(join(world.artifacts.serverDirectory(id), name), text)
  }
  await world.ready(id)
  const first = await until(async () => {
    const answer = await visit(edge, 'marked.localhost').catch(() => '')
    return answer.startsWith('200 mark-') && answer.slice(4)
  })
  const failed: string[] = []
  let over = false
  const load = (async () => {
    while (!over) {
      const answer = await visit(edge, 'marked.localhost')
      if (!answer.startsWith('200 mark-')) failed.push(answer)
    }
  })()
  const holder = async () => byPort.get((await world.db.instance.findFirstOrThrow()).address!)!
  const another = (than: string) =>
    until(async () => {
      const answer = await visit(edge, 'marked.localhost')
      if (!answer.startsWith('200 mark-')) failed.push(answer)
      return answer.startsWith('200 mark-') && answer !== `200 ${than}` && answer.slice(4)
    }, 120_000)

  const hung = await holder()
  hung.child.kill('SIGSTOP')
  const second = await another(first)
  expect(isAlive(first)).toBe(true)
  hung.child.kill('SIGCONT')
  await until(() => !isAlive(first))
  // It serves as before, and has nothing to do. It has to hear from the database first.
  await until(async () => (await hung.readiness())?.code === 200)
  over = true
  await load
  expect(failed).toEqual([])

  const killed = await holder()
  expect(killed).not.toBe(hung)
  await killed.stop('SIGKILL')
  const third = await another(second)
  await until(() => !isAlive(second))

  // The edge keeps its tables on disk some seconds after a change.
  const { address } = await world.db.instance.findFirstOrThrow()
  const vault = createVault(Buffer.alloc(32, 7))
  const log = pino({ level: 'silent' })
  const snapshots = createSnapshots({ directory: join(world.config.dataDir, 'snapshots'), vault, log, readOnly: true })
  const kept = snapshots.open('instances', () => [])
  await until(async () => JSON.stringify(await kept.read()).includes(`"${address}"`))
  await kept.close()
  // Without the database, an edge that is started again serves what runs.
  link.cut()
  await edge.stop('SIGKILL')
  const next = await start('edge', {}, edge.ports)
  await next.ready()
  expect(await visit(next, 'marked.localhost')).toBe(`200 ${third}`)
  await link.mend()
  await until(async () => (await next.readiness())?.status === 'ok')
  expect(await visit(next, 'marked.localhost')).toBe(`200 ${third}`)
})
