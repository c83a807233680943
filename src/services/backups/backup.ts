// Writes a backup: one snapshot of the database, then the files that its deployments need and are made from, while everything runs on.
import { createWriteStream } from 'node:fs'
import { rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { type Artifacts, StoreUnavailable } from '../../platform/artifacts/artifacts.ts'
import { inBlocks, type TreeEntry } from '../../platform/artifacts/trees.ts'
import { type Connection, connectAlone, isDatabaseLost } from '../../platform/database/database.ts'
import { syncPath } from '../../platform/files/durable.ts'
import { keyIdOf } from '../../platform/secrets/secrets.ts'
import { pack, type Summary } from './archive.ts'
import { listUploaded, readArtifacts, readPlainFiles } from './files.ts'
import { readRepositories } from './repositories.ts'
import { beOnlyBackup, holdArtifacts, readMigrations, readReady, readUploadedContents } from './statements.ts'
import { readLayout, readRows } from './tables.ts'

export type Place = {
  databaseUrl: string
  dataDir: string
  artifacts: Artifacts
  /** Where git is found. */
  searchPath: string
  /** SECRETS_KEY, then the old ones. */
  keys: readonly [Buffer, ...Buffer[]]
  /** Whether the first key is a file of the data directory: then it goes along. */
  ownsKey: boolean
}

/** A reason that the operator can act on. */
export class BackupError extends Error {
  override name = 'BackupError'
}

const contentsAtOnce = 10_000

// What is large is compressed already.
const compression = { level: 1, chunkSize: 256 << 10 }

/** Writes `file` as a whole or not at all; a file of this name is replaced at the end. */
export async function writeBackup(
  place: Place,
  file: string,
  signal: AbortSignal,
): Promise<Summary & { bytes: number }> {
  const aside = `${file}.partial`
  const lost = new AbortController()
  const connection = await connectAlone(place.databaseUrl)
  // Without its lock on the artifacts the backup could miss what is removed meanwhile.
  connection.client.on('error', (error) => lost.abort(error))
  try {
    if (!(await beOnlyBackup(connection.db, {}))[0]!.only) throw new BackupError('Another backup is under way.')
    await rm(aside, { force: true })
    const { bytes, summary } = await begin(connection, place)
    await pipeline(
      inBlocks(bytes),
      createGzip(compression),
      createWriteStream(aside, { flags: 'wx', mode: 0o600, flush: true }),
      { signal: AbortSignal.any([signal, lost.signal]) },
    )
    await rename(aside, file)
    // A new name in a directory outlives a power failure only if the directory is written too.
    await syncPath(dirname(file))
    return { ...summary, bytes: (await stat(file)).size }
  } catch (error) {
    await rm(aside, { force: true }).catch(() => {})
    if (signal.aborted) throw new BackupError('The backup was interrupted; nothing was written.')
    throw explain(error, file, lost.signal.aborted)
  } finally {
    await connection.close().catch(() => {})
  }
}

/** Takes the snapshot; the bytes are read from it as they are asked for. */
async function begin(
  connection: Connection,
  place: Place,
): Promise<{ bytes: AsyncGenerator<Buffer>; summary: Summary }> {
  const { db, client } = connection
  const { dataDir, artifacts, searchPath, keys, ownsKey } = place
  // Before the snapshot: what is removed from now on, the snapshot does not know.
  await holdArtifacts(db, {})
  await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
  const migrations = await readMigrations(db, {}).catch((error) => {
    if (error.code !== '42P01') throw error
    throw new BackupError('There is nothing to back up: this is not a database of Berth.')
  })
  const layout = await readLayout(connection)
  const ready = (await readReady(db, {})).map(({ id }) => id)
  // A database that was not migrated yet may have none.
  const hasUploads = layout.tables.some(({ name }) => name === 'source_file')
  const uploaded = await listUploaded(async (after) =>
    hasUploads ? readUploadedContents(db, { after, limit: contentsAtOnce }) : [],
  )
  const summary: Summary = { deployments: ready.length, incomplete: [] }
  const note = (what: string, why: string) => void summary.incomplete.push({ what, why })

  async function* entries(): AsyncGenerator<TreeEntry> {
    yield* readRows(connection, layout.tables)
    // A transaction that stays open keeps the database from tidying up.
    await client.query('COMMIT')
    yield* readPlainFiles(dataDir)
    yield* readRepositories(join(dataDir, 'repos'), searchPath, note)
    yield* readArtifacts(artifacts, ready, uploaded, note)
  }

  const head = {
    createdAt: new Date().toISOString(),
    migrations,
    ...layout,
    keys: keys.map(keyIdOf),
    ...(ownsKey && { secretsKey: keys[0].toString('base64') }),
  }
  return { bytes: pack(head, keys[0], entries(), () => summary), summary }
}

function explain(error: unknown, file: string, lost: boolean): unknown {
  const { code } = error as { code?: string }
  if (error instanceof StoreUnavailable) return new BackupError(`${error.message} Nothing was written.`)
  if (code === 'ENOSPC' || code === 'EDQUOT')
    return new BackupError(`There is no room for ${file}; nothing was written.`)
  if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'EACCES' || code === 'EROFS' || code === 'EISDIR') {
    return new BackupError(`${file} cannot be written: ${(error as Error).message}.`)
  }
  if (!lost && !isDatabaseLost(error)) return error
  return new BackupError('The connection to the database was lost; nothing was written.')
}
