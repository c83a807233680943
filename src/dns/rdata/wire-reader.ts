// Reads rdata in wire format field by field. Errors don't throw; they set `failed`, which is checked at the end.

export class WireReader {
  at = 0
  readonly octets: Buffer
  failed = false

  constructor(octets: Buffer) {
    this.octets = octets
  }

  take(length: number): Buffer {
    if (this.at + length > this.octets.length) this.failed = true
    const part = this.octets.subarray(this.at, this.at + length)
    this.at += length
    return part
  }

  rest(): Buffer {
    return this.take(Math.max(0, this.octets.length - this.at))
  }

  get left(): boolean {
    return !this.failed && this.at < this.octets.length
  }

  number(size: 1 | 2 | 4): number {
    const part = this.take(size)
    return this.failed ? 0 : part.readUIntBE(0, size)
  }

  name(): string {
    let text = ''
    while (!this.failed) {
      const length = this.number(1)
      if (length === 0) break
      // Compression pointers are invalid in generic rdata.
      if (length > 63) this.failed = true
      // Escapes every octet. The parser of names decides which are allowed, and a dot inside a label stays one.
      for (const octet of this.take(length)) text += `\\${octet.toString().padStart(3, '0')}`
      text += '.'
    }
    return text === '' ? '.' : text
  }
}
