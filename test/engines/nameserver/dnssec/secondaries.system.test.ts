// Knot and BIND as secondaries of a signed zone: they follow by IXFR and have the same octets; and renewed signatures.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freePort } from '../../../helpers/ports.ts'
import { until } from '../../../helpers/until.ts'
import { isMissing, keyName, type Peer, run, secret, startPeer, startWorld, type World } from '../transfer/world.ts'
import { faultsOf, signZone, transferred } from './world.ts'

const knotConf = (directory: string, port: number, primary: number) => `
server:
    listen: 127.0.0.1@${port}
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
    address: 127.0.0.1@${primary}
    key: ${keyName}
acl:
  - id: primary
    address: 127.0.0.1
    key: ${keyName}
    action: notify
  - id: anybody
    address: 127.0.0.1
    action: transfer
zone:
  - domain: signed.dev
    storage: "${directory}"
    master: primary
    acl: [ primary, anybody ]
`

const bindConf = (directory: string, port: number, primary: number) => `
key "${keyName}" { algorithm hmac-sha256; secret "${secret}"; };
options {
  directory "${directory}";
  pid-file "${directory}/named.pid";
  session-keyfile "${directory}/session.key";
  listen-on port ${port} { 127.0.0.1; };
  listen-on-v6 { none; };
  recursion no;
  allow-transfer { 127.0.0.1; };
  allow-notify { 127.0.0.1; };
};
controls { };
zone "signed.dev" {
  type secondary;
  file "signed.dev";
  masterfile-format text;
  primaries { 127.0.0.1 port ${primary} key "${keyName}"; };
};
`

const sorted = (text: string) =>
  text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith(';'))
    .map((line) => line.replace(/\s+/g, ' '))
    .sort()

describe.skipIf(isMissing('knotd', 'named', 'dig', 'dnssec-verify', 'ldns-verify-zone'))('a signed zone', () => {
  let world: World
  const ports: number[] = []
  const peers: Peer[] = []

  beforeAll(async () => {
    ports.push(await freePort(), await freePort())
    world = await startWorld(ports.map((port) => `127.0.0.1:${port}`))
    await world.addDomain('signed.dev')
    await signZone(world, 'signed.dev')
    const [knot, bind] = ports as [number, number]
    peers.push(
      await startPeer(
        'knotd',
        (directory) => ['-c', `${directory}/knot.conf`],
        (directory) => ({ 'knot.conf': knotConf(directory, knot, world.port) }),
      ),
      await startPeer(
        'named',
        (directory) => ['-g', '-c', `${directory}/named.conf`],
        (directory) => ({ 'named.conf': bindConf(directory, bind, world.port) }),
      ),
    )
  })
  afterAll(async () => {
    for (const peer of peers) await peer.stop()
    await world?.stop()
  })

  const ask = (port: number, ...args: string[]) =>
    run('dig', ['@127.0.0.1', '-p', String(port), '+tries=1', '+time=2', ...args])
  const whole = (port: number) => ask(port, 'AXFR', 'signed.dev', '+noall', '+answer', '+onesoa', '+nosplit')

  async function followed(): Promise<void> {
    const serial = await world.settled('signed.dev')
    for (const port of ports) {
      await until(async () => (await ask(port, 'SOA', 'signed.dev', '+short')).includes(` ${serial} `)).catch(
        (error) => {
          throw new Error(`${error}\n${peers[ports.indexOf(port)]!.output().slice(-2000)}`)
        },
      )
    }
    const text = await transferred(world, 'signed.dev')
    for (const port of ports) expect(sorted(await whole(port))).toEqual(sorted(text))
    expect(await faultsOf('signed.dev', text)).toBe('')
  }

  test('has the same octets at both secondaries, through changes that come by IXFR', async () => {
    await followed()
    const ids: string[] = []
    for (const name of ['b', '*.c', 'x.y.z']) {
      ids.push(await world.addRecord('signed.dev', 'A', name, '192.0.2.1'))
      await followed()
    }
    for (const id of ids.slice(1)) {
      await world.api.call('DELETE', `/dns/signed.dev/records/${id}`)
      await followed()
    }
    expect(peers[0]!.output()).toMatch(/signed\.dev\.\] IXFR, incoming.*finished/)
    expect(peers[0]!.output()).not.toMatch(/signed\.dev\.\] IXFR.*(failed|fallback)/)
    expect(peers[1]!.output()).not.toMatch(/IXFR failed|got incremental.*error/)
  })

  test('gets renewed signatures with a new version, and loses those that are in use no more', async () => {
    const { db } = world.api
    await world.addRecord('signed.dev', 'A', 'old', '192.0.2.1')
    const before = await world.settled('signed.dev')
    await db.zoneSignature.updateMany({ where: { renewAt: { not: null } }, data: { renewAt: new Date(0) } })
    const was = await ask(world.port, 'A', 'old.signed.dev', '+dnssec', '+short')
    await world.nameserver.snapshot!.renewSignatures()
    expect(await world.settled('signed.dev')).toBe(before + 1)
    await followed()
    expect(await ask(world.port, 'A', 'old.signed.dev', '+dnssec', '+short')).not.toBe(was)
    expect(await db.zoneSignature.count({ where: { renewAt: { lt: new Date() } } })).toBe(0)
    // The SOA of the version before, and that of this one; those of the others are gone.
    expect(await db.zoneSignature.count({ where: { type: 6 } })).toBe(2)
  })

  test('is not signed again by another nameserver, and unsigned once its key is gone', async () => {
    const { db } = world.api
    const rows = await db.zoneSignature.count()
    const text = await transferred(world, 'signed.dev')
    const { id } = await db.domain.findFirstOrThrow({ where: { name: 'signed.dev' } })
    // The same version is read again, as at a start.
    world.nameserver.snapshot!.table.apply(['signed.dev'], [])
    await db.$executeRawUnsafe(`SELECT pg_notify('berth_zone', 'signed.dev')`)
    await until(() => world.nameserver.snapshot!.table.get('signed.dev') !== undefined)
    expect(sorted(await transferred(world, 'signed.dev'))).toEqual(sorted(text))
    expect(await db.zoneSignature.count()).toBe(rows)
    await db.zoneKey.deleteMany({ where: { domainId: id } })
    await world.settled('signed.dev')
    const plain = await transferred(world, 'signed.dev')
    expect(plain).not.toMatch(/RRSIG|NSEC|DNSKEY|CDS/)
    for (const port of ports) await until(async () => sorted(await whole(port)).join() === sorted(plain).join())
  })
})
