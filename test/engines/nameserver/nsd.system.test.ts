import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freePort } from '../../helpers/ports.ts'
import { until } from '../../helpers/until.ts'
import { askTcp, askUdp, type Message, question, type Rr, readMessage, sendUdp, types } from './packets.ts'
import { everyRecord, startWorld, type World } from './world.ts'

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

let world: World
let nsd: ChildProcess
let nsdPort: number
let directory: string
// `full.com` has no defaults left, and `plain.com` nothing else.
const zones = ['full.com', 'plain.com']

/** The edge's addresses stand in an export as comments; NSD gets them as the records that ours answers with. */
function withDefaults(file: string): string {
  return file.replace(/^; ((?:@|www) +\d+ +IN +(?:A|AAAA) .*)$/gm, '$1')
}

beforeAll(async () => {
  if (!installed) return
  world = await startWorld()
  for (const zone of zones) await world.newDomain(zone)
  for (const [type, name, value] of everyRecord) await world.record('full.com', type, name, value)
  await world.record('plain.com', 'TXT', 'x', '"x"', 86_400)
  await world.record('plain.com', 'TXT', 'x', '"y"', 60)
  directory = await mkdtemp(join(tmpdir(), 'berth-nsd-'))
  for (const zone of zones) {
    const { text, status } = await world.call('GET', `/dns/${zone}/zone`)
    expect(status).toBe(200)
    await writeFile(join(directory, zone), withDefaults(text))
    const { body } = await world.call('GET', `/dns/${zone}/zone/status`)
    await until(async () => world.nameserver.snapshot!.table.get(zone)?.serial === body.serial)
  }
  nsdPort = await freePort()
  const settings = [
    'server:',
    `  ip-address: 127.0.0.1@${nsdPort}`,
    `  zonesdir: "${directory}"`,
    '  username: ""',
    `  pidfile: "${directory}/nsd.pid"`,
    `  xfrdfile: "${directory}/xfrd.state"`,
    `  zonelistfile: "${directory}/zone.list"`,
    `  cookie-secret-file: "${directory}/cookies"`,
    '  database: ""',
    '  minimal-responses: yes',
    '  server-count: 1',
    '  rrl-ratelimit: 0',
    '  ipv4-edns-size: 1232',
    'remote-control:',
    '  control-enable: no',
    ...zones.flatMap((zone) => ['zone:', `  name: ${zone}`, `  zonefile: ${zone}`]),
  ]
  await writeFile(join(directory, 'nsd.conf'), `${settings.join('\n')}\n`)
  nsd = spawn('nsd', ['-d', '-c', join(directory, 'nsd.conf')], { stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  nsd.stderr!.on('data', (chunk) => {
    said += chunk
  })
  try {
    await until(async () => (await sendUdp(nsdPort, question('full.com', 'SOA'), 100)) !== null)
  } catch {
    throw new Error(`NSD did not start: ${said}`)
  }
})
afterAll(async () => {
  if (!installed) return
  if (nsd) {
    const ended = new Promise((resolve) => nsd.once('exit', resolve))
    nsd.kill('SIGTERM')
    await ended
  }
  await world?.stop()
  if (directory) await rm(directory, { recursive: true, force: true })
})

const line = ({ name, type, ttl, data }: Rr) => `${name.toLowerCase()} ${ttl} ${type} ${data.toString('hex')}`

function shown({ rcode, aa, tc, rd, ra, answer, authority, question }: Message) {
  const records = tc ? {} : { answer: answer.map(line).sort(), authority: authority.map(line).sort() }
  return { rcode, aa, tc, rd, ra, question, ...records }
}

/** Names that stand in the zones, names beside and below and between them, and the same in other letters. */
function names(): string[] {
  const found = new Set<string>()
  for (const [, name] of everyRecord) {
    const labels = name === '@' ? [] : name.split('.')
    for (let from = 0; from <= labels.length; from++) {
      const own = [...labels.slice(from), 'full.com'].join('.')
      for (const prefix of ['', 'x.', 'y.x.', '*.', 'www.', 'below.x.', '_tcp.']) found.add(prefix + own)
    }
  }
  for (const name of ['plain.com', 'www.plain.com', 'x.plain.com', 'nope.plain.com', 'a.www.plain.com']) found.add(name)
  for (const name of ['com', 'other.com', 'xfull.com', 'full.com.example.net', '.']) found.add(name)
  return [...found]
}

// ANY is answered by NSD with TC, and by us with HINFO: both are what RFC 8482 allows.
const askedTypes = Object.keys(types).filter((type) => !['ANY', 'AXFR', 'IXFR', 'OPT', 'TSIG'].includes(type))

describe.skipIf(!installed)('NSD and Berth give the same answers', () => {
  test('over UDP, to every name and type, in either case', async () => {
    const asked: [string, string, number | undefined][] = []
    for (const [index, name] of names().entries()) {
      for (const type of askedTypes) {
        const spelling = index % 3 === 0 ? name.toUpperCase() : name
        asked.push([spelling, type, index % 2 === 0 ? 1232 : undefined])
      }
    }
    const differences: unknown[] = []
    const work = async () => {
      for (let next = asked.pop(); next; next = asked.pop()) {
        const [name, type, edns] = next
        const packet = question(name, type, { rd: true, ...(edns && { edns }) })
        const [ours, theirs] = await Promise.all(
          [world.ports[asked.length % 2]!, nsdPort].map((port) => sendUdp(port, packet)),
        )
        if (!ours || !theirs) throw new Error(`no answer for ${name} ${type}`)
        const [our, their] = [shown(readMessage(ours)), shown(readMessage(theirs))]
        if (JSON.stringify(our) !== JSON.stringify(their)) differences.push({ name, type, our, their })
      }
    }
    const count = asked.length
    await Promise.all(Array.from({ length: 16 }, work))
    expect(count).toBeGreaterThan(4_000)
    expect(differences.slice(0, 5)).toEqual([])
  })

  test('over TCP, and truncated at the same sizes', async () => {
    for (const type of ['TXT', 'MX', 'A', 'SOA']) {
      const [our, their] = await Promise.all([world.ports[1]!, nsdPort].map((port) => askTcp(port, 'full.com', type)))
      expect(shown(our!)).toEqual(shown(their!))
    }
    for (const edns of [undefined, 512, 600, 1232, 4096]) {
      const [our, their] = await Promise.all(
        [world.ports[0]!, nsdPort].map((port) => askUdp(port, 'full.com', 'TXT', edns === undefined ? {} : { edns })),
      )
      expect([edns, our!.tc]).toEqual([edns, their!.tc])
    }
  })
})
