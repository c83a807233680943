// Writes parts of an answer that are valid only for the moment: copied into memory that is used again and again.
/** No part is longer. */
export const partBytes = 256 << 10
// Below this, Node takes the copy from memory of its own that several share.
const smallBytes = 4 << 10
const maxFree = 16
const free: Buffer[] = []

/** A response, or the socket of a visitor. */
type Visitor = { write(part: Buffer, done?: () => void): boolean; end(part?: Buffer): unknown }

/** False: wait for `drain`. */
export function writePart(visitor: Visitor, part: Buffer): boolean {
  if (part.length < smallBytes || part.length > partBytes) return visitor.write(Buffer.from(part))
  const memory = free.pop() ?? Buffer.allocUnsafeSlow(partBytes)
  part.copy(memory)
  return visitor.write(memory.subarray(0, part.length), () => {
    if (free.length < maxFree) free.push(memory)
  })
}

export function endWith(visitor: Visitor, part: Buffer | null): void {
  if (part === null) return void visitor.end()
  if (part.length < smallBytes) return void visitor.end(Buffer.from(part))
  writePart(visitor, part)
  visitor.end()
}
