// Resolvers of others at a nameserver whose rate limit is used up.
import { afterEach, describe, expect, test } from 'vitest'
import { freePort } from '../../helpers/ports.ts'
import { until } from '../../helpers/until.ts'
import { askUdp } from './packets.ts'
import { isMissing, type Peer, run, startPeer } from './transfer/world.ts'
import { type Served, serveZones } from './zones.ts'

let served: Served | null = null
let peer: Peer | null = null
afterEach(async () => {
  await peer?.stop()
  await served?.stop()
  peer = null
  served = null
})

const bind = (directory: string, port: number, upstream: number) => `
options {
  directory "${directory}";
  pid-file "${directory}/named.pid";
  session-keyfile "${directory}/session.key";
  listen-on port ${port} { 127.0.0.1; };
  listen-on-v6 { none; };
  recursion yes;
  qname-minimization off;
  dnssec-validation no;
  empty-zones-enable no;
};
controls { };
server 127.0.0.1 { send-cookie yes; };
zone "example.com" { type forward; forward only; forwarders { 127.0.0.1 port ${upstream}; }; };
`

const unbound = (directory: string, port: number, upstream: number) => `
server:
  directory: "${directory}"
  chroot: ""
  username: ""
  pidfile: "${directory}/unbound.pid"
  use-syslog: no
  logfile: ""
  num-threads: 1
  interface: 127.0.0.1
  port: ${port}
  do-ip6: no
  do-not-query-localhost: no
  access-control: 127.0.0.0/8 allow
  module-config: "iterator"
remote-control:
  control-enable: no
forward-zone:
  name: "example.com"
  forward-addr: 127.0.0.1@${upstream}
`

const peers = [
  // BIND has cookies and comes again with ours; Unbound has none as a client and comes again over TCP.
  ['named', bind, (dir: string) => ['-g', '-c', `${dir}/peer.conf`], { badCookies: 1 }],
  ['unbound', unbound, (dir: string) => ['-d', '-c', `${dir}/peer.conf`], { badCookies: 0 }],
] as const

describe.each(peers)('%s', (program, conf, args, expected) => {
  test.skipIf(isMissing(program, 'dig'))('has its answer although its address is over the limit', async () => {
    // No time passes, so the limit stays used up.
    served = await serveZones({ rateLimit: { perSecond: 1, slip: 1, isExempt: () => false, now: () => 0 } })
    served.put('example.com', 'www A 192.0.2.1\nother A 192.0.2.2')
    const { port: upstream, metric } = served
    const port = await freePort()
    peer = await startPeer(program, args, (directory) => ({ 'peer.conf': conf(directory, port, upstream) }))
    const ask = (name: string) => run('dig', ['@127.0.0.1', '-p', `${port}`, '+short', '+tries=1', '+time=5', name])
    await askUdp(upstream, 'www.example.com', 'A')
    expect((await askUdp(upstream, 'www.example.com', 'A')).tc).toBe(true)
    await until(async () => (await ask('www.example.com')).trim() === '192.0.2.1')
    expect(await metric('berth_nameserver_queries_total', { rcode: 'BADCOOKIE' })).toBe(expected.badCookies)
  })
})
