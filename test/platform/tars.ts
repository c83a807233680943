// Archives of the headers that a test wants, and what the reader finds in them.
import { ByteReader } from '../../src/platform/files/byte-reader.ts'
import { tarEnd, tarHeader, tarPadding } from '../../src/platform/files/tar.ts'
import { readArchive } from '../../src/platform/files/tar-reader.ts'

export const file = tarHeader({ kind: 'file', path: 'short', mode: 0o644, size: 0 })

/** A header of another kind, with its sum. */
export function flagged(flag: string, content: Buffer): Buffer {
  const block = tarHeader({ kind: 'file', path: 'header', mode: 0o644, size: content.length })
  block.write(flag, 156, 'latin1')
  const sum = block.reduce((sum, byte, at) => sum + (at >= 148 && at < 156 ? 32 : byte), 0)
  block.write(sum.toString(8).padStart(6, '0'), 148, 'latin1')
  return Buffer.concat([block, content, tarPadding(content.length)])
}

export function record(key: string, value: string): Buffer {
  const rest = Buffer.byteLength(` ${key}=${value}\n`)
  let length = rest
  while (rest + String(length).length !== length) length = rest + String(length).length
  return Buffer.from(`${length} ${key}=${value}\n`)
}

export async function pathsOf(...blocks: Buffer[]): Promise<string[]> {
  async function* whole() {
    yield Buffer.concat([...blocks, tarEnd])
  }
  const paths: string[] = []
  for await (const { path } of readArchive(new ByteReader(whole()))) paths.push(path)
  return paths
}
