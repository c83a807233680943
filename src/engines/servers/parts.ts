// Writes parts of an answer that are valid only for the moment: copied into memory that is used again and again.
import type { ServerResponse } from 'node:http'

/** No part is longer. */
export const partBytes = 64 << 10
// Below this, Node takes the copy from memory of its own that several share.
const smallBytes = 4 << 10
const mostFree = 64
const free: Buffer[] = []

/** False: wait for `drain`. */
export function writePart(response: ServerResponse, part: Buffer): boolean {
  if (part.length < smallBytes || part.length > partBytes) return response.write(Buffer.from(part))
  const memory = free.pop() ?? Buffer.allocUnsafeSlow(partBytes)
  part.copy(memory)
  return response.write(memory.subarray(0, part.length), () => {
    if (free.length < mostFree) free.push(memory)
  })
}

export function endWith(response: ServerResponse, part: Buffer | null): void {
  if (part === null) return void response.end()
  if (part.length < smallBytes) return void response.end(Buffer.from(part))
  writePart(response, part)
  response.end()
}
