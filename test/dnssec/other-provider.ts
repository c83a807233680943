// Another provider of a signed zone: Knot serves what BIND's tools have signed, with a key for keys and one for records.
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Peer, run, startPeer } from '../engines/nameserver/transfer/world.ts'
import { until } from '../helpers/until.ts'

export type OtherProvider = {
  /** Values of its DNSKEY records: that of the key for keys, and that of the key for records. */
  keys: string[]
  /** The value of the DS record of its key for keys. */
  ds: string
  /** Serves these lines, signed, and keys of another provider among its own. */
  set(lines: readonly string[], foreignKeys: readonly string[]): Promise<void>
  stop(): Promise<void>
}

const ttl = 1
const conf = (directory: string, address: string, zone: string, file: string) => `
server:
    listen: ${address}@53
    rundir: "${directory}"
log:
  - target: stderr
    any: info
database:
    storage: "${directory}"
zone:
  - domain: ${zone}
    file: "${file}"
    journal-content: none
    zonefile-sync: -1
`

export async function startOtherProvider(zone: string, host: string, address: string): Promise<OtherProvider> {
  const directory = await mkdtemp(join(tmpdir(), 'berth-other-'))
  const keys = join(directory, 'keys')
  await mkdir(keys)
  const [plain, signed] = [join(directory, 'plain'), join(directory, 'signed')]
  let serial = 1_000
  let peer: Peer | null = null
  for (const flags of [['-f', 'KSK'], []]) {
    await run('dnssec-keygen', ['-q', '-a', '13', ...flags, '-L', String(ttl), '-K', keys, zone])
  }
  const files = (await readdir(keys)).filter((name) => name.endsWith('.key'))
  const texts = await Promise.all(files.map((name) => readFile(join(keys, name), 'utf8')))
  const values = texts.map((text) => /DNSKEY\s+(.*)$/m.exec(text)![1]!).sort((one, other) => (one < other ? 1 : -1))

  async function set(lines: readonly string[], foreignKeys: readonly string[]): Promise<void> {
    const all = [
      `$TTL ${ttl}`,
      `@ IN SOA ${host}. hostmaster.${host}. ${++serial} 60 60 86400 ${ttl}`,
      `@ IN NS ${host}.`,
      ...lines,
      ...foreignKeys.map((key) => `@ ${ttl} IN DNSKEY ${key}`),
    ]
    await writeFile(plain, `${all.join('\n')}\n`)
    const said = await run('dnssec-signzone', [
      '-S',
      '-P',
      '-d',
      directory,
      '-K',
      keys,
      '-o',
      `${zone}.`,
      '-f',
      signed,
      plain,
    ])
    if (!/signed$/m.test(said)) throw new Error(said)
    if (peer) peer.signal('SIGHUP')
    else {
      peer = await startPeer(
        'knotd',
        (own) => ['-c', `${own}/knot.conf`],
        (own) => ({ 'knot.conf': conf(own, address, zone, signed) }),
      )
    }
    const ask = () => run('dig', [`@${address}`, '+short', '+norec', '+tries=1', '+time=2', zone, 'SOA'])
    await until(async () => (await ask()).includes(` ${serial} `))
  }

  await set([], [])
  const ds = /DS\s+(.*)$/m.exec(await readFile(join(directory, `dsset-${zone}.`), 'utf8'))![1]!
  return {
    keys: values,
    ds: ds.trim(),
    set,
    async stop() {
      await peer?.stop()
      await rm(directory, { recursive: true, force: true })
    },
  }
}
