// The part of an address that identifies a client, for limits per address.
import { ipv4Text, ipv6Octets } from '../../dns/addresses.ts'

/** An IPv4 address unchanged; the first 64 bits of an IPv6 address, because a client chooses the others itself. */
export function clientOf(address: string): string {
  if (!address.includes(':')) return address
  const octets = ipv6Octets(address.split('%', 1)[0]!)
  if (!octets) return address
  const mapped = octets.readUInt16BE(10) === 0xffff && octets.subarray(0, 10).every((octet) => octet === 0)
  return mapped ? ipv4Text(octets.subarray(12)) : `${octets.toString('hex', 0, 8)}/64`
}
