// The API and both nameservers on one database, as one process runs them.
import { createNameserver, type Nameserver, type NameserverOptions } from '../../../src/engines/nameserver/server.ts'
import { type Answer, startApi, type TestApi } from '../../helpers/api.ts'

export type World = TestApi & {
  nameserver: Nameserver
  ports: number[]
  /** A domain of the first account, or of another one's token. */
  newDomain(name: string, token?: string): Promise<Answer['body']>
  record(zone: string, type: string, name: string, value: string, ttl?: number, token?: string): Promise<Answer>
}

export async function startWorld(
  options: Partial<NameserverOptions> = {},
  environment: Record<string, string> = {},
): Promise<World> {
  const api = await startApi({
    NAMESERVER_LISTEN: '127.0.0.1:0,127.0.0.1:0',
    NAMESERVERS: 'ns1.berth.example,ns2.berth.example',
    EDGE_ADDRESSES: '192.0.2.80,2001:db8::80',
    DEPLOYMENT_DOMAIN: 'berth.example',
    ...environment,
  })
  const nameserver = createNameserver({ ...api.deps, ...options })
  const ports = (await nameserver.listen()).map(({ port }) => port)
  const projects = new Set<string>()
  return {
    ...api,
    nameserver,
    ports,
    async newDomain(name, token = api.token) {
      if (!projects.has(token)) await api.newProject(`site-${projects.size}`, { token })
      const project = `site-${[...projects.add(token)].indexOf(token)}`
      const made = await api.call('POST', '/domains', { body: { project, name }, token })
      if (made.status !== 201) throw new Error(`the domain was not made: ${made.text}`)
      return made.body
    },
    async record(zone, type, name, value, ttl = 300, token = api.token) {
      const made = await api.call('POST', `/dns/${zone}/records`, { body: { type, name, value, ttl }, token })
      if (made.status !== 201) throw new Error(`the record was not made: ${made.text}`)
      return made
    },
    async stop() {
      await nameserver.close()
      await api.stop()
    },
  }
}

// One zone with every type and every situation that lookups know.
export const everyRecord: [type: string, name: string, value: string][] = [
  ['A', '@', '192.0.2.1'],
  ['AAAA', '@', '2001:db8::1'],
  ['MX', '@', '10 mail.full.com'],
  ['MX', '@', '20 mx.example.net'],
  ['TXT', '@', '"v=spf1 -all"'],
  ['TXT', '@', `"${'long '.repeat(100)}"`],
  ['CAA', '@', '0 issue "letsencrypt.org"'],
  ['CAA', '@', '128 iodef "mailto:a@example.net"'],
  ['HTTPS', '@', '1 . alpn="h2,h3" ipv4hint=192.0.2.1 ipv6hint=2001:db8::1'],
  ['SVCB', '_dns', '1 dns.full.com alpn="dot" port=853'],
  ['SVCB', '_alias', '0 dns.example.net'],
  ['SRV', '_sip._tcp', '0 5 5060 sip.full.com'],
  ['SRV', '_none._tcp', '0 0 0 .'],
  ['TLSA', '_443._tcp.www', `3 1 1 ${'AB'.repeat(32)}`],
  ['CNAME', 'www', 'host.full.com'],
  ['CNAME', 'ext', 'target.example.net'],
  ['CNAME', 'chain', 'www.full.com'],
  ['CNAME', 'dangling', 'missing.deep.full.com'],
  ['CNAME', 'into-ent', 'b.c.full.com'],
  ['CNAME', 'into-cut', 'x.cut.full.com'],
  ['CNAME', 'into-wild', 'x.wild.full.com'],
  ['A', 'host', '192.0.2.2'],
  ['A', 'host', '192.0.2.3'],
  ['A', 'mail', '192.0.2.4'],
  ['A', 'a.b.c', '192.0.2.5'],
  ['A', '*.wild', '192.0.2.6'],
  ['TXT', '*.wild', '"any \\"quoted\\" \\\\ \\200"'],
  ['MX', 'below.x.wild', '10 mail.full.com'],
  ['CNAME', '*.wildc', 'host.full.com'],
  ['NS', 'cut', 'ns1.cut.full.com'],
  ['NS', 'cut', 'ns.example.net'],
  ['A', 'ns1.cut', '192.0.2.7'],
  ['AAAA', 'ns1.cut', '2001:db8::7'],
  ['DS', 'cut', `12345 13 2 ${'CD'.repeat(32)}`],
  ['NS', 'bare.cuts', 'ns.example.net'],
  ['TXT', '_acme-challenge', '"own"'],
  ['PTR', 'ptr', 'host.full.com'],
  ['NAPTR', 'naptr', '10 20 "u" "E2U+sip" "!^.*$!sip:info@example.com!" .'],
  ['SSHFP', 'host', `4 2 ${'AB'.repeat(32)}`],
  ['LOC', 'loc', '52 22 23.000 N 4 53 32.000 E -2.00m 1m 10000m 10m'],
  ['HINFO', 'hinfo', '"PC" "Linux"'],
  ['URI', '_web', '10 1 "https://www.example.com/"'],
  ['OPENPGPKEY', 'key', 'mQINBFUo'],
  ['SMIMEA', 'smime', `3 0 1 ${'CD'.repeat(32)}`],
  ['CERT', 'cert', '1 12345 13 MIIB'],
  ['DNAME', 'moved', 'wild.full.com'],
  ['DNAME', 'abroad', 'example.net'],
  ['CDS', 'below', '0 0 0 00'],
  ['CDNSKEY', 'below', '0 3 0 AA=='],
  ['TYPE65280', 'private', '\\# 3 ABCDEF'],
  ['A', 'a\\046b', '192.0.2.8'],
]
