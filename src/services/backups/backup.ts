// Writes a backup of a running installation: a database snapshot, then the files and sources of its deployments.
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
import { acquireBackupLock, lockArtifacts, readMigrations, readReady, readUploadedContents } from './statements.ts'
import { readLayout, readRows } from './tables.ts'

export type Installation = {
  databaseUrl: string
  dataDir: string
  artifacts: Artifacts
  /** The PATH on which to find git. */
  searchPath: string
  /** SECRETS_KEY, then the old keys. */
  keys: readonly [Buffer, ...Buffer[]]
  /** Whether the first key is a file in the data directory; the backup then includes it. */
  ownsKey: boolean
}

/** An error that the operator can act on. */
export class BackupError extends Error {
  override name = 'BackupError'
}

const pageSize = 10_000

// The large files are compressed already.
const compression = { level: 1, chunkSize: 256 << 10 }

/** Writes `file` completely or not at all. An existing file is replaced at the end. */
export async function writeBackup(
  installation: Installation,
  file: string,
  signal: AbortSignal,
): Promise<Summary & { bytes: number }> {
  const partial = `${file}.partial`
  const lost = new AbortController()
  const connection = await connectAlone(installation.databaseUrl)
  // Without its lock on the artifacts, the backup could miss files deleted in the meantime.
  connection.client.on('error', (error) => lost.abort(error))
  try {
    if (!(await acquireBackupLock(connection.db, {}))[0]!.only) throw new BackupError('Another backup is in progress.')
    await rm(partial, { force: true })
    const { bytes, summary } = await startBackup(connection, installation)
    await pipeline(
      inBlocks(bytes),
      createGzip(compression),
      createWriteStream(partial, { flags: 'wx', mode: 0o600, flush: true }),
      { signal: AbortSignal.any([signal, lost.signal]) },
    )
    await rename(partial, file)
    // The new name survives a power failure only if the directory is synced too.
    await syncPath(dirname(file))
    return { ...summary, bytes: (await stat(file)).size }
  } catch (error) {
    await rm(partial, { force: true }).catch(() => {})
    if (signal.aborted) throw new BackupError('The backup was interrupted; nothing was written.')
    throw explain(error, file, lost.signal.aborted)
  } finally {
    await connection.close().catch(() => {})
  }
}

/** Takes the snapshot. The returned bytes are read from it lazily. */
async function startBackup(
  connection: Connection,
  installation: Installation,
): Promise<{ bytes: AsyncGenerator<Buffer>; summary: Summary }> {
  const { db, client } = connection
  const { dataDir, artifacts, searchPath, keys, ownsKey } = installation
  // Locked before the snapshot, so nothing that the snapshot references is deleted.
  await lockArtifacts(db, {})
  await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
  const migrations = await readMigrations(db, {}).catch((error) => {
    if (error.code !== '42P01') throw error
    throw new BackupError('There is nothing to back up: this is not a database of Berth.')
  })
  const layout = await readLayout(connection)
  const ready = (await readReady(db, {})).map(({ id }) => id)
  // A database that is not fully migrated may lack this table.
  const hasUploads = layout.tables.some(({ name }) => name === 'source_file')
  const uploaded = await listUploaded(async (after) =>
    hasUploads ? readUploadedContents(db, { after, limit: pageSize }) : [],
  )
  const summary: Summary = { deployments: ready.length, incomplete: [] }
  const recordIncomplete = (what: string, why: string) => void summary.incomplete.push({ what, why })

  async function* entries(): AsyncGenerator<TreeEntry> {
    yield* readRows(connection, layout.tables)
    // A long transaction would block vacuuming.
    await client.query('COMMIT')
    yield* readPlainFiles(dataDir)
    yield* readRepositories(join(dataDir, 'repos'), searchPath, recordIncomplete)
    yield* readArtifacts(artifacts, ready, uploaded, recordIncomplete)
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
