import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freePort } from '../../helpers/ports.ts'
import { until } from '../../helpers/until.ts'
import { question, sendUdp } from '../nameserver/packets.ts'
import { startVerificationWorld, type VerificationWorld } from './world.ts'

function isInstalled(): boolean {
  try {
    execFileSync('which', ['nsd'])
    return true
  } catch {
    if (process.env.BERTH_REQUIRE_PEERS === '1') throw new Error('nsd is not installed')
    return false
  }
}
const installed = isInstalled()

let world: VerificationWorld
let directory: string
const running: ChildProcess[] = []

/** A real authoritative server for these zones; a zone file each. */
async function startNsd(zones: Record<string, string>): Promise<number> {
  const home = await mkdtemp(join(directory, 'nsd-'))
  const port = await freePort()
  const settings = [
    'server:',
    `  ip-address: 127.0.0.1@${port}`,
    `  zonesdir: "${home}"`,
    '  username: ""',
    ...['pid', 'xfrd', 'zonelist'].map((file) => `  ${file}file: "${home}/${file}"`),
    '  database: ""',
    '  server-count: 1',
    'remote-control:',
    '  control-enable: no',
    ...Object.keys(zones).flatMap((zone) => ['zone:', `  name: ${zone}`, `  zonefile: ${zone}`]),
  ]
  for (const [zone, text] of Object.entries(zones)) {
    await writeFile(join(home, zone), `$ORIGIN ${zone}.\n$TTL 60\n@ SOA ns.x. h.x. 1 60 60 60 60\n${text}\n`)
  }
  await writeFile(join(home, 'nsd.conf'), `${settings.join('\n')}\n`)
  running.push(spawn('nsd', ['-d', '-c', join(home, 'nsd.conf')], { stdio: 'ignore' }))
  const [zone] = Object.keys(zones)
  await until(async () => (await sendUdp(port, question(zone!, 'SOA'), 100)) !== null)
  return port
}

beforeAll(async () => {
  if (!installed) return
  world = await startVerificationWorld()
  directory = await mkdtemp(join(tmpdir(), 'berth-verification-'))
})
afterAll(async () => {
  for (const nsd of running) {
    const ended = once(nsd, 'exit')
    nsd.kill('SIGTERM')
    await ended
  }
  await world?.stop()
  if (directory) await rm(directory, { recursive: true, force: true })
})

describe.skipIf(!installed)('a domain whose zones are on NSD', () => {
  test('is proved by its delegation, by a TXT record in an answer that needs TCP, and below a server of both zones', async () => {
    const names = ['here.com', 'there.com', 'both.com', 'shop.both.com', 'nowhere.com']
    for (const name of names) await world.newDomain(name)
    const txt = async (name: string) => `_berth${name.split('.').length > 2 ? '.shop' : ''} TXT "${await value(name)}"`
    const value = async (name: string) => (await world.read(name)).verification.txt.value
    const ours = world.ours.map((host) => `here NS ${host}.`).join('\n')
    const many = Array.from({ length: 20 }, (_, n) => `_berth TXT "${n} ${'x'.repeat(60)}"`).join('\n')
    const both = `@ NS ns.both.com.\n@ A 192.0.2.1\nns A 192.0.2.1\n${await txt('shop.both.com')}\n${await txt('both.com')}`
    const com = `@ NS a.registry.net.\n${ours}\nthere NS ns.there.com.\nns.there A 192.0.2.2\nboth NS ns.both.com.\nns.both A 192.0.2.1`
    const top = await startNsd({ com, 'both.com': both })
    const other = await startNsd({
      'there.com': `@ NS ns.there.com.\nns A 192.0.2.2\n${many}\n${await txt('there.com')}`,
    })
    for (const [index, host] of ['a', 'b', 'c'].entries()) {
      world.internet.place(`${host}.registry.net`, `192.0.2.${100 + index}`, top)
    }
    world.internet.place('ns.both.com', '192.0.2.1', top)
    world.internet.place('ns.there.com', '192.0.2.2', other)
    world.internet.zones.set('both.com', ['ns.both.com'])

    const methods: Record<string, string | null> = {}
    for (const name of names) methods[name] = (await world.check(name)).verification.method
    expect(methods).toEqual({
      'here.com': 'nameservers',
      'there.com': 'txt',
      'both.com': 'txt',
      'shop.both.com': 'txt',
      'nowhere.com': null,
    })
    expect((await world.read('there.com')).verification.observed.nameservers).toEqual(['ns.there.com'])
    expect((await world.read('nowhere.com')).verification.reason).toContain('.com has no name nowhere.com.')
  })
})
