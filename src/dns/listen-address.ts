// Where a nameserver listens, as configurations write it.
import { isIPv6 } from 'node:net'

export type ListenAddress = { host: string; port: number }

/** `127.0.0.1:5300` or `[::1]:5300`; a bare address is on port 53. */
export function listenAddress(text: string): ListenAddress {
  const bracketed = /^\[(.+)\](?::(\d+))?$/.exec(text)
  if (bracketed) return { host: bracketed[1]!, port: Number(bracketed[2] ?? 53) }
  if (isIPv6(text)) return { host: text, port: 53 }
  const [host = '', port = '53'] = text.split(':')
  return { host: host || '0.0.0.0', port: Number(port) }
}

const loopback: Record<string, string> = { '0.0.0.0': '127.0.0.1', '::': '::1' }

/** Where a server that listens there is asked on its own machine; null with port 0, whose actual port is not known. */
export function askedAt({ host, port }: ListenAddress): ListenAddress | null {
  return port > 0 ? { host: loopback[host] ?? host, port } : null
}
