import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, vi } from 'vitest'
import { type ServedPlatform, startServedPlatform } from '../../engines/servers/platform.ts'
import { required, networkTest as test } from '../../sandbox/outside.ts'
import { openWorld, type World } from '../../sandbox/world.ts'
import { type Canary, plantCanary } from './canary.ts'

vi.setConfig({ testTimeout: 90_000 })

let world: World
let canary: Canary
let platform: ServedPlatform
beforeAll(async () => {
  if (!required) return
  world = await openWorld()
  canary = await plantCanary()
  platform = await startServedPlatform({}, { options: { resolvers: [world.upstream.address] } })
})
afterAll(async () => {
  await platform?.stop()
  await canary?.remove()
  await world?.close()
})

/** A server that tries each of these when it is visited, and answers what came of it. */
const server = (tries: Record<string, string>) => `
const fs = require('node:fs'), net = require('node:net')
const tcp = (host, port) => new Promise((resolve) => {
  const socket = net.connect({ host, port, family: 0 }, () => socket.write('hello'))
  socket.setTimeout(15000, () => socket.destroy(new Error('silence')))
  socket.on('data', (data) => resolve('reached: ' + data)).on('error', (error) => resolve(error.code || error.message))
})
const file = (act) => { try { return 'done: ' + act() } catch (error) { return error.code } }
require('node:http').createServer(async (request, response) => {
  if (request.url !== '/' || request.headers['user-agent'] === 'Berth-Health-Check') return response.end('up')
  const found = {}
${Object.entries(tries)
  .map(([name, attempt]) => `  found[${JSON.stringify(name)}] = await ${attempt}`)
  .join('\n')}
  response.end(JSON.stringify(found))
}).listen(process.env.PORT)
`

async function answers(name: string, tries: Record<string, string>, settings: object = {}) {
  const files = {
    'server.js': server(tries),
    'package.json': JSON.stringify({ name, private: true, scripts: { start: 'exec node server.js' } }),
    outside: { link: canary.directory },
    '.next': { link: canary.directory },
  }
  await platform.project(name, files, { framework: 'node', settings })
  const id = await platform.deploy(name, { production: true })
  const deployment = await platform.settled(id)
  expect(deployment).toMatchObject({ state: 'READY', error: null })
  const text = await platform.visit(deployment.url)
  return JSON.parse(text.slice(4)) as Record<string, string>
}

describe('a hostile server', () => {
  test('uses a TCP service of the internet by its name, and reaches nothing inward', async () => {
    const { outside, machinePort } = world
    world.reached.length = 0
    const inward = {
      loopback: `tcp('127.0.0.1', ${machinePort})`,
      'loopback-6': `tcp('::1', ${machinePort})`,
      mapped: `tcp('::ffff:127.0.0.1', ${machinePort})`,
      zero: `tcp('0.0.0.0', ${machinePort})`,
      decimal: `tcp('2130706433', ${machinePort})`,
      private: `tcp('10.0.0.1', 80)`,
      'private-172': `tcp('172.16.0.1', 80)`,
      'private-192': `tcp('192.168.0.1', 80)`,
      shared: `tcp('100.64.0.1', 80)`,
      metadata: `tcp('169.254.169.254', 80)`,
      gateway: `tcp('10.0.2.2', ${machinePort})`,
      machine: `tcp('${outside.machine}', ${machinePort})`,
      'by-name': `tcp('loopback.example', ${machinePort})`,
      'machine-by-name': `tcp('machine.example', ${machinePort})`,
    }
    const service = { outside: `tcp('web.example', ${outside.echoPort})` }
    const { outside: reached, ...refused } = await answers('network', { ...service, ...inward })
    expect(reached).toBe('reached: tcp hello')
    expect(Object.keys(refused)).toEqual(Object.keys(inward))
    for (const [name, answer] of Object.entries(refused)) {
      expect({ name, answer }).toEqual({
        name,
        answer: expect.stringMatching(/^(ECONNREFUSED|ENETUNREACH|EHOSTUNREACH|EACCES|ENOTFOUND|EAI_AGAIN)$/),
      })
    }
    expect(world.reached).toEqual([])
    const none = await answers('network-none', service, { serverNetwork: 'none' })
    expect(none.outside).toMatch(/^(ENETUNREACH|ENOTFOUND|EAI_AGAIN|ECONNREFUSED)$/)
  })

  test('finds nothing of the host behind its links, and cannot change what was built', async () => {
    const found = await answers('files', {
      link: `file(() => fs.readdirSync('outside'))`,
      write: `file(() => fs.writeFileSync('outside/new', 'x'))`,
      'write-tree': `file(() => fs.writeFileSync('new', 'x'))`,
      'remove-tree': `file(() => fs.unlinkSync('server.js'))`,
      'swap-tree': `file(() => fs.renameSync('/build', '/old'))`,
      history: `file(() => fs.readdirSync('.git'))`,
      others: `file(() => fs.readdirSync('/build/..').join())`,
      process: `file(() => fs.readFileSync('/proc/1/environ', 'utf8').includes('DATABASE') || fs.readdirSync('/proc').filter((name) => /^[0-9]/.test(name)).length)`,
    })
    expect(found).toMatchObject({
      link: 'ENOENT',
      write: 'ENOENT',
      'write-tree': 'EROFS',
      'remove-tree': 'EROFS',
      history: 'ENOENT',
    })
    expect(found['swap-tree']).toMatch(/^E(BUSY|ROFS|ACCES|PERM)$/)
    expect(found.others).not.toMatch(/root|home\/|srv|data/)
    // Its own alone: the first process of the sandbox, the forwarder, the shell and the server.
    expect(Number(found.process?.replace('done: ', ''))).toBeLessThan(10)
    await canary.expectUntouched()
  })

  test('leaves the host as it was when it is deleted with its links', async () => {
    expect((await platform.api.call('DELETE', '/projects/files')).status).toBe(204)
    const ids = async () => platform.api.db.job.count({ where: { kind: 'reap' } })
    await expect.poll(ids).toBe(0)
    await canary.expectUntouched()
    expect(await readFile(canary.file, 'utf8')).toBe(canary.secret)
  })
})
