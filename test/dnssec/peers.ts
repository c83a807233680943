// The programs of others around signed zones: unbound as a validating resolver, Knot and BIND as secondaries.
import { keyName, type Peer, secret, startPeer } from '../engines/nameserver/transfer/world.ts'
import type { Parents } from './parents.ts'

/** What resolvers keep an answer for, at most, in seconds: the TTLs of production, made short. */
export const cacheTtl = 1

type Stub = { zone: string; server: string }

/** What a resolver keeps of a TTL, in seconds, and whether it takes the first answer that is bogus instead of asking on. */
type Keeping = { maxTtl?: number; isStrict?: boolean }

const unboundConf = (
  directory: string,
  address: string,
  only: readonly Stub[],
  { maxTtl = cacheTtl, isStrict = false }: Keeping,
) => `
server:
  directory: "${directory}"
  chroot: ""
  username: ""
  pidfile: "${directory}/unbound.pid"
  use-syslog: no
  logfile: ""
  val-log-level: 2
  log-servfail: yes
  num-threads: 1
  interface: ${address}
  port: 53
  do-ip6: no
  outgoing-interface: 127.0.0.1
  do-not-query-localhost: no
  access-control: 127.0.0.0/8 allow
  root-hints: "${directory}/hints"
  trust-anchor-file: "${directory}/anchor"
  module-config: "validator iterator"
  cache-max-ttl: ${maxTtl}
  cache-max-negative-ttl: ${cacheTtl}
  val-bogus-ttl: 1
${isStrict ? '  val-max-restart: 0\n' : ''}  infra-host-ttl: 1
  infra-keep-probing: yes
remote-control:
  control-enable: no
${only.map(({ zone, server }) => `stub-zone:\n  name: "${zone}"\n  stub-addr: ${server}\n  stub-prime: no\n`).join('')}`

/** `only`: the one server that it asks for each of these zones, or names. */
export function startResolver(
  address: string,
  { root, anchor }: Pick<Parents, 'root' | 'anchor'>,
  only: readonly Stub[] = [],
  keeping: Keeping = {},
): Promise<Peer> {
  return startPeer(
    'unbound',
    (directory) => ['-d', '-c', `${directory}/unbound.conf`],
    (directory) => ({
      'unbound.conf': unboundConf(directory, address, only, keeping),
      hints: `. 3600 IN NS a.root.\na.root. 3600 IN A ${root}\n`,
      anchor: `. 3600 IN DNSKEY ${anchor}\n`,
    }),
  )
}

const knotConf = (directory: string, address: string, zones: readonly string[], primaries: readonly string[]) => `
server:
    listen: ${address}@53
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
    address: [ ${primaries.map((primary) => `${primary}@53`).join(', ')} ]
    key: ${keyName}
acl:
  - id: primary
    key: ${keyName}
    action: notify
  - id: anybody
    address: 127.0.0.0/8
    action: transfer
zone:
${zones.map((zone) => `  - domain: ${zone}\n    storage: "${directory}"\n    master: primary\n    acl: [ primary, anybody ]`).join('\n')}
`

const bindConf = (directory: string, port: number, zones: readonly string[], primaries: readonly string[]) => `
key "${keyName}" { algorithm hmac-sha256; secret "${secret}"; };
options {
  directory "${directory}";
  pid-file "${directory}/named.pid";
  session-keyfile "${directory}/session.key";
  listen-on port ${port} { 127.0.0.1; };
  listen-on-v6 { none; };
  recursion no;
  allow-transfer { 127.0.0.0/8; };
  allow-notify { 127.0.0.0/8; };
};
controls { };
${zones
  .map(
    (zone) => `zone "${zone}" {
  type secondary;
  file "${zone}";
  masterfile-format text;
  primaries { ${primaries.map((primary) => `${primary} key "${keyName}";`).join(' ')} };
};`,
  )
  .join('\n')}
`

export type Secondary = { zones: readonly string[]; primaries: readonly string[] }

export function startKnot(address: string, { zones, primaries }: Secondary): Promise<Peer> {
  return startPeer(
    'knotd',
    (directory) => ['-c', `${directory}/knot.conf`],
    (directory) => ({ 'knot.conf': knotConf(directory, address, zones, primaries) }),
  )
}

/** At 127.0.0.1: BIND listens only where an interface has its address. */
export function startBind(port: number, { zones, primaries }: Secondary): Promise<Peer> {
  return startPeer(
    'named',
    (directory) => ['-g', '-c', `${directory}/named.conf`],
    (directory) => ({ 'named.conf': bindConf(directory, port, zones, primaries) }),
  )
}
