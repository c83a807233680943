// Reads a stream by counted bytes; the stream may be hostile, so the caller bounds every read.
/** The stream ended early. */
export class CutShort extends Error {
  override name = 'CutShort'
}

const nothing = Buffer.alloc(0)

export class ByteReader {
  readonly #source: AsyncIterator<Buffer>
  #held: Buffer = nothing

  constructor(stream: AsyncIterable<Buffer>) {
    this.#source = stream[Symbol.asyncIterator]()
  }

  /** Exactly this many bytes, in one buffer. */
  async take(bytes: number): Promise<Buffer> {
    if (this.#held.length >= bytes) return this.#cut(bytes)
    const pieces = [this.#held]
    let length = this.#held.length
    while (length < bytes) {
      const next = await this.#next()
      pieces.push(next)
      length += next.length
    }
    this.#held = Buffer.concat(pieces, length)
    return this.#cut(bytes)
  }

  /** Exactly this many bytes, in chunks. All of them must be read before the next call. */
  async *stream(bytes: number): AsyncGenerator<Buffer> {
    for (let left = bytes; left > 0; ) {
      if (this.#held.length === 0) this.#held = await this.#next()
      const piece = this.#cut(Math.min(left, this.#held.length))
      left -= piece.length
      yield piece
    }
  }

  /** Whatever is left, in chunks. */
  async *rest(): AsyncGenerator<Buffer> {
    if (this.#held.length > 0) yield this.#cut(this.#held.length)
    for (;;) {
      const { done, value } = await this.#source.next()
      if (done) return
      yield value
    }
  }

  /** The bytes before the delimiter `end`; undefined at the end of the stream. More than `maxBytes` is an error. */
  async until(end: number, maxBytes: number): Promise<Buffer | undefined> {
    for (let from = 0; ; ) {
      const at = this.#held.indexOf(end, from)
      if (at > maxBytes) throw new CutShort('A piece of the stream is too long.')
      if (at >= 0) {
        const piece = this.#cut(at)
        this.#cut(1)
        return piece
      }
      if (this.#held.length > maxBytes) throw new CutShort('A piece of the stream is too long.')
      from = this.#held.length
      const { done, value } = await this.#source.next()
      if (done && from === 0) return undefined
      if (done) throw new CutShort('The stream ended in the middle of a piece.')
      this.#held = Buffer.concat([this.#held, value])
    }
  }

  #cut(bytes: number): Buffer {
    const piece = this.#held.subarray(0, bytes)
    this.#held = bytes === this.#held.length ? nothing : this.#held.subarray(bytes)
    return piece
  }

  async #next(): Promise<Buffer> {
    const { done, value } = await this.#source.next()
    if (done) throw new CutShort('The stream ended too early.')
    return value
  }
}
