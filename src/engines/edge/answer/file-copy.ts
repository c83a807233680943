// Copies a part of a file into a response in large pieces: one is read while the one before it is sent.
import type { FileHandle } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import type { Range } from './ranges.ts'

const largePiece = 512 << 10
// Each copy holds two pieces. From so many on they are small, because slow visitors hold them for long.
const maxLarge = 32
const smallPiece = 64 << 10

/** Memory that was used before costs half of new memory, whose pages the system has to clear first. */
const spare: Buffer[] = []
let copies = 0

function takePair(): [Buffer, Buffer] {
  const take = () => {
    if (copies > maxLarge) return Buffer.allocUnsafeSlow(smallPiece)
    return spare.pop() ?? Buffer.allocUnsafeSlow(largePiece)
  }
  return [take(), take()]
}

export class CopyCut extends Error {
  override name = 'CopyCut'
}

/** Resolves when everything is sent, rejects if the visitor leaves or the file is shorter. `onSent` hears of each piece. */
export async function copyFile(
  file: FileHandle,
  range: Range,
  response: ServerResponse,
  onSent: (bytes: number) => void,
): Promise<void> {
  copies++
  const pair = takePair()
  let isIdle = true
  let leave = (_error: Error) => {}
  const left = new Promise<never>((_resolve, reject) => {
    leave = reject
  })
  left.catch(() => {})
  const onClose = () => leave(new CopyCut('the visitor has left'))
  response.once('close', onClose)

  function write(piece: Buffer): Promise<void> {
    isIdle = false
    const written = new Promise<void>((resolve, reject) => {
      response.write(piece, (error) => {
        if (error) return reject(new CopyCut(error.message))
        isIdle = true
        onSent(piece.length)
        resolve()
      })
    })
    return Promise.race([written, left])
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
    // What a connection may still send from is left to the garbage collector.
    if (isIdle)
      for (const buffer of pair) if (buffer.length === largePiece && spare.length < 2 * maxLarge) spare.push(buffer)
  }
}
