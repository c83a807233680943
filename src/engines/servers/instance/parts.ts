// Writes parts of responses, copying them into reused buffers because the parts are valid only for a moment.
/** The maximum length of a part. */
export const maxPartBytes = 256 << 10
// Smaller copies come from Node's own shared pool.
const minPooledBytes = 4 << 10
const maxFree = 16
const free: Buffer[] = []

/** The response to a visitor, or their socket. */
type Visitor = { write(part: Buffer, done?: () => void): boolean; end(part?: Buffer): unknown }

/** Returns false if the caller should wait for `drain`. */
export function writePart(visitor: Visitor, part: Buffer): boolean {
  if (part.length < minPooledBytes || part.length > maxPartBytes) return visitor.write(Buffer.from(part))
  const buffer = free.pop() ?? Buffer.allocUnsafeSlow(maxPartBytes)
  part.copy(buffer)
  return visitor.write(buffer.subarray(0, part.length), () => {
    if (free.length < maxFree) free.push(buffer)
  })
}

export function endWithPart(visitor: Visitor, part: Buffer | null): void {
  if (part === null) return void visitor.end()
  if (part.length < minPooledBytes) return void visitor.end(Buffer.from(part))
  writePart(visitor, part)
  visitor.end()
}
