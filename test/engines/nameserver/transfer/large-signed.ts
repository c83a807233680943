// A large signed zone, and secondaries of it: Knot, BIND and NSD.
import { connect } from 'node:net'
import { join } from 'node:path'
import { typeNumbers } from '../../../../src/dns/packet/numbers.ts'
import { createSigner, type TsigKey } from '../../../../src/dns/packet/tsig.ts'
import { onAbort } from '../../../../src/platform/abort.ts'
import { closed } from '../../../helpers/closed.ts'
import { freePort } from '../../../helpers/ports.ts'
import { until } from '../../../helpers/until.ts'
import { signZone } from '../dnssec/world.ts'
import { framed, question } from '../packets.ts'
import { keyName, type Peer, secret, startPeer, type World } from './world.ts'

const patienceMs = 600_000

/** Makes a signed zone with so many A records and waits until it is served. */
export async function importSigned(world: World, zone: string, records: number): Promise<void> {
  await world.addDomain(zone)
  await signZone(world, zone)
  const body = Array.from(
    { length: records },
    (_, index) => `n${index} 300 IN A 198.51.${(index >> 8) & 255}.${index & 255}`,
  ).join('\n')
  const headers = { 'content-type': 'text/dns' }
  const made = await world.api.call('PUT', `/dns/${zone}/zone`, { body, headers })
  if (made.status !== 200) throw new Error(made.text)
  await served(world, zone)
}

async function served(world: World, zone: string): Promise<void> {
  const { serial } = await world.api.db.domain.findFirstOrThrow({ where: { name: zone } })
  await until(() => world.nameserver.snapshot!.table.get(zone)?.serial === serial, patienceMs)
}

const address = '127.0.0.1'

const knotConf = (zone: string, directory: string, port: number, primary: number) => `
server:
    listen: ${address}@${port}
    rundir: "${directory}"
log:
  - target: stderr
    any: info
database:
    storage: "${directory}"
key:
  - id: ${keyName}
    algorithm: hmac-sha256
    secret: ${secret}
remote:
  - id: primary
    address: ${address}@${primary}
    key: ${keyName}
zone:
  - domain: ${zone}
    storage: "${directory}"
    master: primary
    zonefile-sync: -1
`

const bindConf = (zone: string, directory: string, port: number, primary: number) => `
key "${keyName}" { algorithm hmac-sha256; secret "${secret}"; };
options {
  directory "${directory}";
  pid-file none;
  session-keyfile none;
  listen-on port ${port} { ${address}; };
  listen-on-v6 { none; };
  recursion no;
};
controls { };
zone "${zone}" {
  type secondary;
  primaries { ${address} port ${primary} key "${keyName}"; };
};
`

const nsdConf = (zone: string, directory: string, port: number, primary: number) => `
server:
    ip-address: ${address}@${port}
    username: ""
    database: ""
    pidfile: ""
    zonesdir: "${directory}"
    xfrdfile: "${directory}/xfrd.state"
    zonelistfile: "${directory}/zone.list"
    xfrdir: "${directory}"
remote-control:
    control-enable: no
key:
    name: "${keyName}"
    algorithm: hmac-sha256
    secret: "${secret}"
zone:
    name: "${zone}"
    zonefile: "${directory}/zone"
    request-xfr: AXFR ${address}@${primary} ${keyName}
    allow-notify: ${address} NOKEY
`

const servers = {
  knotd: { args: [], conf: knotConf },
  named: { args: ['-g', '-n', '1'], conf: bindConf },
  nsd: { args: ['-d'], conf: nsdConf },
}
export type Program = keyof typeof servers
export const programs = Object.keys(servers) as Program[]

export type Secondary = Peer & { port: number }

export async function startSecondary(world: World, program: Program, zone: string): Promise<Secondary> {
  const { args, conf } = servers[program]
  const port = await freePort()
  const peer = await startPeer(
    program,
    (directory) => [...args, '-c', join(directory, 'conf')],
    (directory) => ({ conf: conf(zone, directory, port, world.port) }),
  )
  return { ...peer, port }
}

/** Asks for a whole zone and closes the connection when the first octets of it come, or as it is told to. */
export async function abortTransfer(port: number, zone: string, key: TsigKey, signal?: AbortSignal): Promise<void> {
  const now = () => Math.floor(Date.now() / 1000)
  const socket = connect(port, address)
  const ended = closed(socket)
  socket.write(framed(createSigner(key, null, now)(question(zone, typeNumbers.AXFR))))
  socket.once('data', () => socket.destroy())
  const stop = signal && onAbort(signal, () => void socket.destroy())
  await ended
  stop?.()
}
