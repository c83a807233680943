// The nameserver pool, and how names are resolved.
import { Type } from '@sinclair/typebox'
import { List, list, type Refuse, Text, type Values } from './variables.ts'

export const nameserverVariables = {
  NAMESERVERS: List('ns1.berth.test,ns2.berth.test'),
  NAMESERVER_LISTEN: List('127.0.0.1:5300,127.0.0.1:5301'),
  NAMESERVER_SECONDARIES: List(),
  NAMESERVER_TSIG: Text(),
  NAMESERVER_WORKERS: Type.Optional(Type.Integer({ minimum: 0, maximum: 256 })),
  DNS_RESOLVERS: List(),
  DNSSEC: Type.Union([Type.Literal('on'), Type.Literal('off')], { default: 'on' }),
}

const hostName = /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)+$/

export function nameserverSettings(env: Values<typeof nameserverVariables>, refuse: Refuse) {
  if (env.NAMESERVER_SECONDARIES && !env.NAMESERVER_TSIG) refuse('NAMESERVER_SECONDARIES needs NAMESERVER_TSIG.')
  const nameservers = list(env.NAMESERVERS).map((name) => name.toLowerCase().replace(/\.$/, ''))
  if (nameservers.length < 2 || nameservers.length > 26 || new Set(nameservers).size !== nameservers.length) {
    refuse('NAMESERVERS must name 2 to 26 different hosts.')
  }
  const malformed = nameservers.find((name) => !hostName.test(name))
  if (malformed !== undefined) refuse(`NAMESERVERS must be host names, got ${malformed}.`)
  return {
    /** The pool, in lower case: every claim to a domain gets two of them. */
    nameservers,
    nameserverListen: list(env.NAMESERVER_LISTEN),
    /** `address:port` of the servers that are notified and may transfer zones. */
    nameserverSecondaries: list(env.NAMESERVER_SECONDARIES),
    nameserverTsig: env.NAMESERVER_TSIG ? parseTsigKey(env.NAMESERVER_TSIG, refuse) : null,
    /** Threads that answer UDP queries; 0: only the main thread; null: one per processor if no other role runs here. */
    nameserverWorkers: env.NAMESERVER_WORKERS ?? null,
    /** Resolvers for names outside the platform; empty: the system's. */
    dnsResolvers: list(env.DNS_RESOLVERS),
    /** Whether delegated domains are signed unless their owners choose otherwise. */
    dnssec: env.DNSSEC === 'on',
  }
}

/** `name:secret`, the secret in base64; the algorithm is hmac-sha256. */
function parseTsigKey(text: string, refuse: Refuse): { name: string; secret: Buffer } {
  const [name = '', secret = ''] = text.split(':')
  const bytes = Buffer.from(secret, 'base64')
  if (!/^[a-z0-9.-]+$/i.test(name) || bytes.length < 16) {
    refuse('NAMESERVER_TSIG must be <name>:<secret>, the secret at least 16 bytes in base64.')
  }
  return { name: name.toLowerCase().replace(/\.$/, ''), secret: bytes }
}
