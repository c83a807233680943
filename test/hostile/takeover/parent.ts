// A real parent zone: .com on Knot, whose delegations and TXT records the tests change.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { readMessage } from '../../engines/nameserver/messages.ts'
import { question, sendUdp } from '../../engines/nameserver/packets.ts'
import { run, startPeer } from '../../engines/nameserver/transfer/world.ts'
import { freePort } from '../../helpers/ports.ts'
import { until } from '../../helpers/until.ts'

export type Parent = {
  port: number
  /** What the zone has at names below it; takes effect with `publish`. */
  delegations: Map<string, readonly string[]>
  texts: Map<string, string>
  publish(): Promise<void>
  stop(): Promise<void>
}

export async function startParent(): Promise<Parent> {
  const port = await freePort()
  const delegations = new Map<string, readonly string[]>()
  const texts = new Map<string, string>()
  let serial = 1

  const zone = () =>
    [
      '$ORIGIN com.\n$TTL 60',
      `@ SOA a.registry.net. hostmaster.registry.net. ${serial} 60 60 60 60`,
      ...['a', 'b', 'c'].map((host) => `@ NS ${host}.registry.net.`),
      ...[...delegations].flatMap(([name, hosts]) => hosts.map((host) => `${name}. NS ${host}.`)),
      ...[...texts].map(([name, value]) => `${name}. TXT "${value}"`),
      '',
    ].join('\n')

  const knot = await startPeer(
    'knotd',
    (directory) => ['-c', join(directory, 'knot.conf')],
    (directory) => ({
      'com.zone': zone(),
      'knot.conf': `server:
  rundir: "${directory}"
  listen: 127.0.0.1@${port}
  udp-workers: 1
  tcp-workers: 1
  background-workers: 1
database:
  storage: "${directory}"
log:
  - target: stderr
    any: warning
template:
  - id: default
    storage: "${directory}"
    zonefile-sync: -1
    zonefile-load: whole
    journal-content: none
zone:
  - domain: com
    file: com.zone
`,
    }),
  )

  async function served(): Promise<number | null> {
    const answer = await sendUdp(port, question('com', 'SOA'), 200)
    const data = answer && readMessage(answer).answer[0]?.data
    return data ? data.readUInt32BE(data.length - 20) : null
  }
  await until(async () => (await served()) === serial)

  return {
    port,
    delegations,
    texts,
    async publish() {
      serial++
      await writeFile(join(knot.directory, 'com.zone'), zone())
      await run('knotc', ['-s', join(knot.directory, 'knot.sock'), '-b', 'zone-reload', 'com'])
      await until(async () => (await served()) === serial)
    },
    stop: knot.stop,
  }
}
