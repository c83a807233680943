// IPv4 and IPv6 addresses: strict parsing to octets, and the canonical text of each (RFC 5952).
import { isIPv4, isIPv6 } from 'node:net'

export function ipv4Octets(text: string): Buffer | null {
  return isIPv4(text) ? Buffer.from(text.split('.').map(Number)) : null
}

export function ipv4Text(octets: Uint8Array): string {
  return octets.join('.')
}

export function ipv6Octets(text: string): Buffer | null {
  // A zone id names an interface of one machine, which means nothing in a public record.
  if (text.includes('%') || !isIPv6(text)) return null
  let groups = text
  const embedded = text.slice(text.lastIndexOf(':') + 1)
  const octets = embedded.includes('.') ? ipv4Octets(embedded) : null
  if (octets) {
    const tail = `${octets.readUInt16BE(0).toString(16)}:${octets.readUInt16BE(2).toString(16)}`
    groups = text.slice(0, -embedded.length) + tail
  }
  const [head = '', tail] = groups.split('::')
  const before = head === '' ? [] : head.split(':')
  const after = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = new Array<string>(8 - before.length - after.length).fill('0')
  const address = Buffer.alloc(16)
  for (const [index, group] of [...before, ...zeros, ...after].entries()) {
    address.writeUInt16BE(Number.parseInt(group, 16), index * 2)
  }
  return address
}

export function ipv6Text(octets: Buffer): string {
  const groups = Array.from({ length: 8 }, (_, index) => octets.readUInt16BE(index * 2))
  if (groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff) {
    return `::ffff:${ipv4Text(octets.subarray(12))}`
  }
  let longest = { start: 0, length: 1 }
  for (let start = 0; start < 8; start++) {
    let length = 0
    while (groups[start + length] === 0) length++
    if (length > longest.length) longest = { start, length }
  }
  const hex = groups.map((group) => group.toString(16))
  if (longest.length < 2) return hex.join(':')
  return `${hex.slice(0, longest.start).join(':')}::${hex.slice(longest.start + longest.length).join(':')}`
}
