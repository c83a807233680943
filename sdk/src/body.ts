// Reads a response body up to a limit, because a broken or hostile server may send one that never ends.
import { InvalidResponse } from './errors.ts'

const maxBytes = 256 << 20

/** Throws `InvalidResponse` at the limit and stops reading. */
export async function readBody(chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array<ArrayBuffer>> {
  const read: Uint8Array<ArrayBuffer>[] = []
  let bytes = 0
  for await (const chunk of chunks) {
    bytes += chunk.byteLength
    if (bytes > maxBytes) throw new InvalidResponse('The server responded with more than 256 MiB.')
    read.push(chunk as Uint8Array<ArrayBuffer>)
  }
  return new Uint8Array(await new Blob(read).arrayBuffer())
}

/** Iterates over a stream, which not every browser can do itself. */
export async function* chunksOf(stream: ReadableStream<Uint8Array> | null): AsyncGenerator<Uint8Array> {
  if (!stream) return
  const reader = stream.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      yield value
    }
  } finally {
    reader.cancel().catch(() => {})
  }
}
