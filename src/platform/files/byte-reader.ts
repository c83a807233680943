// Reads counted bytes from a stream. The stream may be hostile, so the caller limits every read.
/** The stream ended early. */
export class TruncatedStream extends Error {
  override name = 'TruncatedStream'
}

const nothing = Buffer.alloc(0)

export class ByteReader {
  readonly #source: AsyncIterator<Buffer>
  #buffer: Buffer = nothing

  constructor(stream: AsyncIterable<Buffer>) {
    this.#source = stream[Symbol.asyncIterator]()
  }

  /** Returns exactly this many bytes, in one buffer. */
  async take(bytes: number): Promise<Buffer> {
    if (this.#buffer.length >= bytes) return this.#cut(bytes)
    const pieces = [this.#buffer]
    let length = this.#buffer.length
    while (length < bytes) {
      const next = await this.#next()
      pieces.push(next)
      length += next.length
    }
    this.#buffer = Buffer.concat(pieces, length)
    return this.#cut(bytes)
  }

  /** Yields exactly this many bytes, in chunks. The caller must read all of them before the next call. */
  async *stream(bytes: number): AsyncGenerator<Buffer> {
    for (let left = bytes; left > 0; ) {
      if (this.#buffer.length === 0) this.#buffer = await this.#next()
      const piece = this.#cut(Math.min(left, this.#buffer.length))
      left -= piece.length
      yield piece
    }
  }

  /** Yields what is left, in chunks. */
  async *rest(): AsyncGenerator<Buffer> {
    if (this.#buffer.length > 0) yield this.#cut(this.#buffer.length)
    for (;;) {
      const { done, value } = await this.#source.next()
      if (done) return
      yield value
    }
  }

  /** Returns the bytes before the delimiter `end`; undefined at the end of the stream. More than `maxBytes` is an error. */
  async until(end: number, maxBytes: number): Promise<Buffer | undefined> {
    for (let from = 0; ; ) {
      const at = this.#buffer.indexOf(end, from)
      if (at > maxBytes) throw new TruncatedStream('A piece of the stream is too long.')
      if (at >= 0) {
        const piece = this.#cut(at)
        this.#cut(1)
        return piece
      }
      if (this.#buffer.length > maxBytes) throw new TruncatedStream('A piece of the stream is too long.')
      from = this.#buffer.length
      const { done, value } = await this.#source.next()
      if (done && from === 0) return undefined
      if (done) throw new TruncatedStream('The stream ended in the middle of a piece.')
      this.#buffer = Buffer.concat([this.#buffer, value])
    }
  }

  #cut(bytes: number): Buffer {
    const piece = this.#buffer.subarray(0, bytes)
    this.#buffer = bytes === this.#buffer.length ? nothing : this.#buffer.subarray(bytes)
    return piece
  }

  async #next(): Promise<Buffer> {
    const { done, value } = await this.#source.next()
    if (done) throw new TruncatedStream('The stream ended too early.')
    return value
  }
}
