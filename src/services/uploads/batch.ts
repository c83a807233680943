// Several small files in one request: a tar archive in memory, in which the name of each file is its hash.
import { hash } from 'node:crypto'
import { Fault } from '../../platform/errors.ts'
import { ByteReader, TruncatedStream } from '../../platform/files/byte-reader.ts'
import { BadArchive, tarPadding } from '../../platform/files/tar.ts'
import { readArchive } from '../../platform/files/tar-reader.ts'

export type BatchFile = { sha256: string; content: Buffer }

/** A refusal of an archive as a whole. */
export function badArchive(detail: string): Fault {
  return new Fault('validation_failed', detail, { errors: [{ in: 'body', pointer: '#', code: 'not_valid', detail }] })
}

/** What a reader threw about an archive, as a refusal; everything else as it is. */
export function refusalOf(error: unknown): unknown {
  if (error instanceof BadArchive) return badArchive(error.message)
  return error instanceof TruncatedStream ? badArchive('The archive ends too early.') : error
}

/** The files of the archive, each once; throws unless all of them are what their names say. */
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
      const found = hash('sha256', content)
      if (kind !== 'file' || path !== found) {
        throw badArchive(
          `${JSON.stringify(path.slice(0, 100))} must be a file whose name is the SHA-256 of its content.`,
        )
      }
      files.set(found, content)
    }
  } catch (error) {
    throw refusalOf(error)
  }
  if (files.size === 0) throw badArchive('The archive has no files.')
  return [...files].map(([sha256, content]) => ({ sha256, content }))
}
