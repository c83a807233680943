// The archive of a backup: a tar whose first entry describes it and whose last entry authenticates all of it.
import { createHmac, type Hmac, hkdfSync, timingSafeEqual } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { createGunzip } from 'node:zlib'
import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { entryBytes, type TreeEntry } from '../../platform/artifacts/trees.ts'
import { ByteReader, TruncatedStream } from '../../platform/files/byte-reader.ts'
import { BadArchive, readTar, type TarEntry, tarEnd, tarPadding } from '../../platform/files/tar.ts'

const headPath = 'head.json'
const endPath = 'end.json'
const format = 1
// Limit of the first and last entry, which grow with the number of tables and incomplete deployments.
const maxJsonBytes = 16 << 20
const blockBytes = 256 << 10

const Head = Type.Object({
  format: Type.Integer(),
  createdAt: Type.String(),
  /** Migrations applied to the database. */
  migrations: Type.Array(Type.Object({ name: Type.String(), checksum: Type.String() })),
  /** Ordered by foreign keys: no row comes before one that it references. */
  tables: Type.Array(Type.Object({ name: Type.String(), columns: Type.Array(Type.String()) })),
  partitions: Type.Array(Type.Object({ name: Type.String(), parent: Type.String(), bound: Type.String() })),
  sequences: Type.Array(Type.Object({ name: Type.String(), value: Type.String() })),
  /** Fingerprints of SECRETS_KEY and the old keys; the first key signs the archive. */
  keys: Type.Array(Type.String(), { minItems: 1 }),
  /** Base64; only if the key is a file in the data directory, which production does not allow. */
  secretsKey: Type.Optional(Type.String()),
})
export type Head = Static<typeof Head>

const End = Type.Object({
  entries: Type.Integer(),
  bytes: Type.Integer(),
  deployments: Type.Integer(),
  /** Items that could not be backed up completely, and why. */
  incomplete: Type.Array(Type.Object({ what: Type.String(), why: Type.String() })),
  mac: Type.String(),
})
export type End = Static<typeof End>

export type BackupEntry =
  | (Extract<TarEntry, { kind: 'file' }> & { content: AsyncGenerator<Buffer> })
  | Exclude<TarEntry, { kind: 'file' }>

/** Derives a separate key, so a MAC of a backup is valid for nothing else that uses SECRETS_KEY. */
function macOf(key: Buffer): Hmac {
  return createHmac('sha256', Buffer.from(hkdfSync('sha256', key, '', 'berth backup', 32)))
}

export type Summary = Pick<End, 'deployments' | 'incomplete'>

/** Packs the archive. `summary` is called after the last entry. */
export async function* pack(
  head: Omit<Head, 'format'>,
  key: Buffer,
  entries: AsyncIterable<TreeEntry>,
  summary: () => Summary,
): AsyncGenerator<Buffer> {
  const mac = macOf(key)
  let count = 0
  let bytes = 0

  async function* counted(entry: TreeEntry): AsyncGenerator<Buffer> {
    for await (const chunk of entryBytes(entry)) {
      mac.update(chunk)
      yield chunk
    }
    count++
    if (entry.kind !== 'file') return
    bytes += entry.size
    yield tarPadding(entry.size)
  }

  yield* counted(json(headPath, { format, ...head }))
  for await (const entry of entries) yield* counted(entry)
  const end = json(endPath, { entries: count, bytes, ...summary(), mac: mac.digest('hex') } satisfies End)
  yield* entryBytes(end)
  yield tarPadding(end.size)
  yield tarEnd
}

function json(path: string, value: object): Extract<TreeEntry, { kind: 'file' }> {
  const content = Buffer.from(JSON.stringify(value))
  return { kind: 'file', path, mode: 0o600, size: content.length, content: [content] }
}

export type OpenArchive = {
  head: Head
  entries(): AsyncGenerator<BackupEntry>
  /** Available only after the last entry. */
  end(): End
}

/**
 * Opens the archive. `keyFor` returns the key that signed it. Reading all entries without an error proves that no byte
 * is missing or changed.
 */
export async function openArchive(file: string, keyFor: (head: Head) => Buffer): Promise<OpenArchive> {
  const source = createReadStream(file, { highWaterMark: blockBytes })
  const gunzip = createGunzip({ chunkSize: blockBytes })
  source.on('error', (error) => gunzip.destroy(error))
  const reader = new ByteReader(source.pipe(gunzip))
  const tar = readTar(reader)

  const first = await next()
  if (first?.path !== headPath || first.kind !== 'file') throw new BadArchive(`${file} is not a backup of Berth.`)
  const text = await whole(first.size)
  const parsed = parseJson(text) as { format?: unknown } | undefined
  if (Number(parsed?.format) > format) throw new BadArchive('The archive was made by a newer version of Berth.')
  const head = checked(Head, parsed)
  const mac = macOf(keyFor(head)).update(first.head).update(text)
  let count = 1
  let bytes = text.length
  let end: End | undefined

  async function next() {
    return tar.next().then(({ value }) => value || undefined, explain)
  }

  async function whole(size: number): Promise<Buffer> {
    if (size > maxJsonBytes) throw new BadArchive('The archive is damaged.')
    const text = await reader.take(size).catch(explain)
    await reader.take(tarPadding(size).length).catch(explain)
    return text
  }

  async function* contentOf(size: number): AsyncGenerator<Buffer> {
    try {
      for await (const chunk of reader.stream(size)) {
        mac.update(chunk)
        yield chunk
      }
      await reader.take(tarPadding(size).length)
    } catch (error) {
      explain(error)
    }
    bytes += size
  }

  /** Checks the MAC, that only the two empty blocks of a tar follow, and that the compressed stream ends properly. */
  async function readEnd(size: number): Promise<End> {
    const end = checked(End, parseJson(await whole(size)))
    const expectedMac = Buffer.from(end.mac, 'hex')
    const actualMac = mac.digest()
    const isAuthentic = expectedMac.length === actualMac.length && timingSafeEqual(expectedMac, actualMac)
    if (!isAuthentic || end.entries !== count || end.bytes !== bytes || (await next())) {
      throw new BadArchive('The archive is damaged.')
    }
    try {
      for await (const piece of reader.rest()) {
        if (piece.some((byte) => byte !== 0)) throw new BadArchive('The archive is damaged.')
      }
    } catch (error) {
      explain(error)
    }
    return end
  }

  return {
    head,
    async *entries() {
      try {
        for (;;) {
          const entry = await next()
          if (!entry) throw new BadArchive('The archive is cut short.')
          if (entry.path === endPath && entry.kind === 'file') {
            end = await readEnd(entry.size)
            return
          }
          mac.update(entry.head)
          count++
          if (entry.kind !== 'file') yield entry
          else {
            const content = contentOf(entry.size)
            yield { ...entry, content }
            for await (const _ of content);
          }
        }
      } finally {
        source.destroy()
        gunzip.destroy()
      }
    },
    end() {
      if (!end) throw new Error('The archive was not read to its end.')
      return end
    },
  }
}

/** Turns errors of the compressed stream into readable ones. */
function explain(error: unknown): never {
  const { code } = error as { code?: string }
  if (error instanceof TruncatedStream || code === 'Z_BUF_ERROR') throw new BadArchive('The archive is cut short.')
  if (code?.startsWith('Z_')) throw new BadArchive('The archive is damaged.')
  throw error
}

/** Returns undefined for invalid JSON. */
export function parseJson(text: Buffer): unknown {
  try {
    return JSON.parse(text.toString())
  } catch {
    return undefined
  }
}

function checked<T extends TSchema>(schema: T, value: unknown): Static<T> {
  if (!Value.Check(schema, value)) throw new BadArchive('The archive is damaged.')
  return value as Static<T>
}
