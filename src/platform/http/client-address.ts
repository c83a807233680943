// The part of a client's address that tells one client from another, for limits per address.
import { ipv4Text, ipv6Octets } from '../../dns/addresses.ts'

/** IPv4 as it is; of IPv6 the first 64 bits, because a client chooses the others itself. */
export function clientOf(address: string): string {
  if (!address.includes(':')) return address
  const octets = ipv6Octets(address.split('%', 1)[0]!)
  if (!octets) return address
  const mapped = octets.readUInt16BE(10) === 0xffff && octets.subarray(0, 10).every((octet) => octet === 0)
  return mapped ? ipv4Text(octets.subarray(12)) : `${octets.toString('hex', 0, 8)}/64`
}
