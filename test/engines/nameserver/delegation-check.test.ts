// Zonemaster, which registries check delegations with, in a world of its own: a network namespace with a root, a
// top-level domain, and Berth's nameservers on port 53.
import { execFile, spawnSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApi, type TestApi } from '../../helpers/api.ts'

const programs = ['unshare', 'ip', 'knotd', 'kdig', 'zonemaster-cli']
const inNamespace = ['--map-root-user', '--net', '--pid', '--fork', '--kill-child']
// Not every machine that has the programs grants namespaces, so this is left out in silence also where peers are required.
const possible =
  programs.every((program) => spawnSync('sh', ['-c', `command -v ${program}`]).status === 0) &&
  spawnSync('unshare', [...inNamespace, 'true']).status === 0

// Public addresses in networks apart, as the check wants them; in the namespace they are nobody else's.
const [root, ns1, ns2] = ['45.90.0.1', '45.90.1.1', '45.91.1.1']
const soa = 'SOA ns.nic.test. hostmaster.nic.test. 1 14400 3600 604800 300'
const zones = {
  '.': `. ${soa}\n. NS ns.nic.test.\ntest. NS ns.nic.test.\nns.nic.test. A ${root}\n`,
  test: `test. ${soa}\ntest. NS ns.nic.test.\nns.nic.test. A ${root}
    berth.test. NS ns1.berth.test.\nberth.test. NS ns2.berth.test.\nns1.berth.test. A ${ns1}\nns2.berth.test. A ${ns2}
    shop.test. NS ns1.berth.test.\nshop.test. NS ns2.berth.test.`.replace(/^ +/gm, ''),
  'in-addr.arpa': `in-addr.arpa. ${soa}\nin-addr.arpa. NS ns.nic.test.
    1.1.90.45.in-addr.arpa. PTR ns1.berth.test.\n1.1.91.45.in-addr.arpa. PTR ns2.berth.test.`.replace(/^ +/gm, ''),
}
const arpa = '\nin-addr.arpa. NS ns.nic.test.\n'

describe.skipIf(!possible)('a check of delegations', () => {
  let api: TestApi
  let directory: string
  let relay: Server

  beforeAll(async () => {
    api = await startApi({ DEPLOYMENT_DOMAIN: 'berth.test' })
    directory = await mkdtemp(join(tmpdir(), 'berth-check-'))
    await api.newProject('site')
    await api.call('POST', '/domains', { body: { project: 'site', name: 'shop.test' } })
    for (const [type, name, value] of [
      ['MX', '@', '10 mail.shop.test'],
      ['A', 'mail', '192.0.2.4'],
    ]) {
      await api.call('POST', '/dns/shop.test/records', { body: { type, name, value } })
    }
    // The only way into the namespace is a file: the database, under the name that PostgreSQL's own socket would have.
    const { hostname, port } = new URL(api.databaseUrl)
    relay = createServer((socket) => {
      const onward = connect(Number(port), hostname)
      socket.pipe(onward).pipe(socket)
      socket.on('error', () => onward.destroy())
      onward.on('error', () => socket.destroy())
    })
    await new Promise<void>((resolve) => relay.listen(join(directory, '.s.PGSQL.5432'), resolve))
  })
  afterAll(async () => {
    relay?.close()
    await api?.stop()
    await rm(directory, { recursive: true, force: true })
  })

  /** The script is the first process of the namespace: when it ends, all others in there do. */
  function runIsolated(script: string, env: NodeJS.ProcessEnv): Promise<string> {
    return new Promise((resolve) => {
      const options = {
        cwd: directory,
        env: { PATH: process.env.PATH, ...env },
        timeout: 50_000,
        killSignal: 'SIGKILL' as const,
      }
      execFile('unshare', [...inNamespace, 'sh', '-c', script], options, (_error, stdout, stderr) =>
        resolve(stdout + stderr),
      )
    })
  }

  test('finds nothing wrong with a domain of a customer, nor with the platform’s own', async () => {
    const database = new URL(api.databaseUrl)
    database.host = 'localhost:5432'
    database.search = `?host=${directory}&port=5432`
    const names = Object.keys(zones)
    await writeFile(
      join(directory, 'knot.conf'),
      `server:\n  rundir: "${directory}"\n  listen: ${root}@53\ndatabase:\n  storage: "${directory}"
template:\n  - id: default\n    storage: "${directory}"\n    zonefile-sync: -1\n    journal-content: none
zone:\n${names.map((name, index) => `  - domain: ${name}\n    file: zone-${index}\n`).join('')}`,
    )
    for (const [index, text] of Object.values(zones).entries()) {
      await writeFile(join(directory, `zone-${index}`), `$TTL 3600\n${text}${index === 0 ? arpa : ''}\n`)
    }
    await writeFile(join(directory, 'hints'), `. 3600 NS ns.nic.test.\nns.nic.test. 3600 A ${root}\n`)
    const cli = join(import.meta.dirname, '../../../src/cli.ts')
    const output = await runIsolated(
      `ip link set lo up
       for address in ${root} ${ns1} ${ns2}; do ip addr add $address/32 dev lo; done
       knotd -c knot.conf > knot.log 2>&1 &
       "${process.execPath}" "${cli}" serve --roles nameserver > berth.log 2>&1 &
       berth=$!
       while kill -0 $berth; do
         kdig @${ns2} +time=1 +retry=0 +short SOA shop.test 2> kdig.txt | grep -q hostmaster && break
         sleep 0.1
       done
       for zone in shop.test berth.test; do
         zonemaster-cli --no-progress --no-ipv6 --hints hints --level INFO --show-testcase $zone > $zone.txt 2>&1 &
         checks="$checks $!"
       done
       wait $checks
       cat shop.test.txt berth.test.txt; grep -h . *.log >&2`,
      {
        DATABASE_URL: database.href,
        DATA_DIR: join(directory, 'data'),
        DEPLOYMENT_DOMAIN: 'berth.test',
        EDGE_ADDRESSES: `${ns1},${ns2}`,
        NAMESERVERS: 'ns1.berth.test,ns2.berth.test',
        NAMESERVER_LISTEN: `${ns1}:53,${ns2}:53`,
        METRICS_PORT: '0',
      },
    )
    // Both were checked to the end, and nothing is worse than a matter of taste.
    expect(output.match(/A unique SOA record is returned by all nameservers/g) ?? output).toHaveLength(2)
    expect(output.split('\n').filter((line) => /\b(WARNING|ERROR|CRITICAL)\b/.test(line))).toEqual([])
  }, 60_000)
})
