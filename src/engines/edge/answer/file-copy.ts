// Copies part of a file into a response in large chunks, reading one while the previous one is sent.
import type { FileHandle } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import type { Range } from './ranges.ts'

const largePiece = 512 << 10
// Each copy holds two chunks. Beyond this many copies, chunks are small, because slow visitors hold them for long.
const maxLarge = 32
const smallPiece = 64 << 10

/** Reused memory costs half as much as new memory, whose pages the kernel has to clear first. */
const spare: Buffer[] = []
let copies = 0

function allocatePair(): [Buffer, Buffer] {
  const allocate = () => {
    if (copies > maxLarge) return Buffer.allocUnsafeSlow(smallPiece)
    return spare.pop() ?? Buffer.allocUnsafeSlow(largePiece)
  }
  return [allocate(), allocate()]
}

export class CopyAborted extends Error {
  override name = 'CopyCut'
}

/** Resolves when everything is sent. Rejects if the visitor disconnects or the file is shorter than `range`. */
export async function copyFile(
  file: FileHandle,
  range: Range,
  response: ServerResponse,
  onSent: (bytes: number) => void,
): Promise<void> {
  copies++
  const pair = allocatePair()
  let isIdle = true
  let abort = (_error: Error) => {}
  const aborted = new Promise<never>((_resolve, reject) => {
    abort = reject
  })
  aborted.catch(() => {})
  const onClose = () => abort(new CopyAborted('the visitor has left'))
  response.once('close', onClose)

  function write(piece: Buffer): Promise<void> {
    isIdle = false
    const written = new Promise<void>((resolve, reject) => {
      response.write(piece, (error) => {
        if (error) return reject(new CopyAborted(error.message))
        isIdle = true
        onSent(piece.length)
        resolve()
      })
    })
    return Promise.race([written, aborted])
  }

  try {
    let sending: Promise<void> | undefined
    for (let at = range.start, turn = 0; at <= range.end; turn ^= 1) {
      const buffer = pair[turn]!
      const { bytesRead } = await file.read(buffer, 0, Math.min(buffer.length, range.end - at + 1), at)
      await sending
      if (bytesRead === 0) throw new Error('the file is shorter than it was')
      sending = write(buffer.subarray(0, bytesRead))
      sending.catch(() => {})
      at += bytesRead
    }
    await sending
    response.end()
  } finally {
    response.off('close', onClose)
    copies--
    // A buffer that a connection may still be sending is left to the garbage collector.
    if (isIdle)
      for (const buffer of pair) if (buffer.length === largePiece && spare.length < 2 * maxLarge) spare.push(buffer)
  }
}
