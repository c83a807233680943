// Batches of small files: a tar archive in memory, in which the name of each file is its hash.
import { hash } from 'node:crypto'
import { Fault } from '../../platform/errors.ts'
import { ByteReader, TruncatedStream } from '../../platform/files/byte-reader.ts'
import { BadArchive, tarPadding } from '../../platform/files/tar.ts'
import { readArchive } from '../../platform/files/tar-reader.ts'

export type BatchFile = { sha256: string; content: Buffer }

/** An error about the archive as a whole. */
export function badArchive(detail: string): Fault {
  return new Fault('validation_failed', detail, { errors: [{ in: 'body', pointer: '#', code: 'not_valid', detail }] })
}

/** Turns an error of the archive readers into a fault for the client; returns other errors unchanged. */
export function refusalOf(error: unknown): unknown {
  if (error instanceof BadArchive) return badArchive(error.message)
  return error instanceof TruncatedStream ? badArchive('The archive ends too early.') : error
}

/** Reads the distinct files of the archive. Throws unless each name is the hash of its content. */
export async function readBatch(archive: Buffer | undefined): Promise<BatchFile[]> {
  async function* whole() {
    yield archive ?? Buffer.alloc(0)
  }
  const reader = new ByteReader(whole())
  const files = new Map<string, Buffer>()
  try {
    for await (const { kind, path, size } of readArchive(reader)) {
      if (kind === 'directory') continue
      const content = await reader.take(size)
      await reader.take(tarPadding(size).length)
      const sha256 = hash('sha256', content)
      if (kind !== 'file' || path !== sha256) {
        throw badArchive(
          `${JSON.stringify(path.slice(0, 100))} must be a file whose name is the SHA-256 of its content.`,
        )
      }
      files.set(sha256, content)
    }
  } catch (error) {
    throw refusalOf(error)
  }
  if (files.size === 0) throw badArchive('The archive has no files.')
  return [...files].map(([sha256, content]) => ({ sha256, content }))
}
