// A signed root and signed top-level domains: Knot serves what dnssec-signzone has signed, and is told of changes by SIGHUP.
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Peer, run, startPeer } from '../engines/nameserver/transfer/world.ts'
import { until } from '../helpers/until.ts'

/** Of everything that the parents have, in seconds. */
export const parentTtl = 1

const soa = (serial: number) => `@ ${parentTtl} IN SOA a.tld. hostmaster.tld. ${serial} 60 60 86400 ${parentTtl}\n`

/** The records of a zone, one per line. */
type Lines = readonly string[]

export type Parents = {
  root: string
  top: string
  /** The key of the root, as the value of its DNSKEY record. */
  anchor: string
  /** What `com` or `net` has from now on, beside its own SOA and NS records; served when this is over. */
  set(zone: 'com' | 'net', lines: Lines): Promise<void>
  stop(): Promise<void>
}

const conf = (directory: string, address: string, zones: { name: string; file: string }[]) => `
server:
    listen: ${address}@53
    rundir: "${directory}"
log:
  - target: stderr
    any: info
database:
    storage: "${directory}"
zone:
${zones.map(({ name, file }) => `  - domain: ${name}\n    file: "${file}"\n    journal-content: none\n    zonefile-sync: -1`).join('\n')}
`

/** `unsigned` are zones of the top-level servers that nobody signs, by name. */
export async function startParents(root: string, top: string, unsigned: ReadonlyMap<string, Lines>): Promise<Parents> {
  const directory = await mkdtemp(join(tmpdir(), 'berth-parents-'))
  const keys = join(directory, 'keys')
  await mkdir(keys)
  let serial = 1
  const fileOf = (zone: string) => join(directory, `${zone || 'root'}.signed`)

  async function must(program: string, args: string[], good: RegExp): Promise<string> {
    const said = await run(program, args)
    if (!good.test(said)) throw new Error(`${program}: ${said}`)
    return said
  }

  async function write(zone: string, lines: Lines): Promise<void> {
    const plain = join(directory, `${zone || 'root'}.zone`)
    const served = zone === '' ? 'a.root.' : 'a.tld.'
    await writeFile(plain, `$TTL ${parentTtl}\n${soa(++serial)}@ IN NS ${served}\n${lines.join('\n')}\n`)
    const made = ['-S', '-z', '-P', '-d', directory, '-K', keys, '-o', `${zone}.`, '-f', fileOf(zone), plain]
    await must('dnssec-signzone', made, /\.signed$/m)
  }

  for (const zone of ['.', 'com', 'net']) {
    await must('dnssec-keygen', ['-q', '-a', '13', '-f', 'KSK', '-L', String(parentTtl), '-K', keys, zone], /^K/m)
  }
  for (const zone of ['com', 'net']) await write(zone, [])
  const ds = await Promise.all(['com', 'net'].map((zone) => readFile(join(directory, `dsset-${zone}.`), 'utf8')))
  const cuts = ['com. IN NS a.tld.', 'net. IN NS a.tld.', `a.tld. IN A ${top}`, `a.root. IN A ${root}`]
  await write('', [...cuts, ...ds.map((text) => text.trim())])
  const rootKey = (await readdir(keys)).find((name) => /^K\.\+.*\.key$/.test(name))!
  const anchor = /DNSKEY\s+(.*)$/m.exec(await readFile(join(keys, rootKey), 'utf8'))![1]!

  const others = [...unsigned].map(([name]) => ({ name, file: join(directory, `${name}.zone`) }))
  for (const [name, lines] of unsigned) {
    await writeFile(
      join(directory, `${name}.zone`),
      `$TTL ${parentTtl}\n${soa(1)}@ IN NS a.tld.\n${lines.join('\n')}\n`,
    )
  }
  const start = (address: string, zones: { name: string; file: string }[]): Promise<Peer> =>
    startPeer(
      'knotd',
      (own) => ['-c', `${own}/knot.conf`],
      (own) => ({ 'knot.conf': conf(own, address, zones) }),
    )
  const peers: Peer[] = []
  async function stop(): Promise<void> {
    for (const peer of peers) await peer.stop()
    await rm(directory, { recursive: true, force: true })
  }
  const serialAt = (address: string, zone: string) =>
    run('dig', [`@${address}`, '+short', '+norec', '+tries=1', '+time=2', `${zone}.`, 'SOA'])
  const served = (address: string, zone: string, wanted: number) =>
    until(async () => (await serialAt(address, zone)).includes(` ${wanted} `))
  try {
    peers.push(await start(root, [{ name: '.', file: fileOf('') }]))
    peers.push(await start(top, [...['com', 'net'].map((name) => ({ name, file: fileOf(name) })), ...others]))
    await served(root, '', serial)
    await served(top, 'net', serial - 1)
  } catch (error) {
    await stop()
    throw error
  }

  return {
    root,
    top,
    anchor,
    async set(zone, lines) {
      await write(zone, lines)
      peers[1]!.signal('SIGHUP')
      await served(top, zone, serial)
    },
    stop,
  }
}
