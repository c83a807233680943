// The address that a server listens on, as written in the configuration.
import { isIPv6 } from 'node:net'

export type ListenAddress = { host: string; port: number }

/** `127.0.0.1:5300` or `[::1]:5300`; without a port, 53 is used. */
export function listenAddress(text: string): ListenAddress {
  const bracketed = /^\[(.+)\](?::(\d+))?$/.exec(text)
  if (bracketed) return { host: bracketed[1]!, port: Number(bracketed[2] ?? 53) }
  if (isIPv6(text)) return { host: text, port: 53 }
  const [host = '', port = '53'] = text.split(':')
  return { host: host || '0.0.0.0', port: Number(port) }
}

const loopback: Record<string, string> = { '0.0.0.0': '127.0.0.1', '::': '::1' }

/** A server that listens on all addresses is reached at loopback. */
export const reachableHost = (host: string) => loopback[host] ?? host

/** The address for reaching a local server; null with port 0, whose actual port is unknown. */
export function reachableAddress({ host, port }: ListenAddress): ListenAddress | null {
  return port > 0 ? { host: reachableHost(host), port } : null
}
