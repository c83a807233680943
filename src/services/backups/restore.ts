// Restores a backup into an empty installation: checks the whole archive, then loads the database in one transaction.
import { join } from 'node:path'
import type { Artifacts } from '../../platform/artifacts/artifacts.ts'
import { type Connection, connectAlone } from '../../platform/database/database.ts'
import { syncFileSystems, syncTree } from '../../platform/files/durable.ts'
import { BadArchive } from '../../platform/files/tar.ts'
import { keyIdOf } from '../../platform/secrets/secrets.ts'
import { type BackupEntry, type End, type Head, openArchive } from './archive.ts'
import { BackupError } from './backup.ts'
import { repositoryOf, writeRepository } from './repositories.ts'
import { analyzeTables, isEmpty } from './statements.ts'
import { finishTables, prepareTables, tableOf, writeRows } from './tables.ts'
import { createUnpacker } from './unpack.ts'

/** The migrations of this version of Berth. */
export type Migrations = {
  all: readonly { name: string; checksum: string }[]
  /** Takes the lock that servers take before they migrate. */
  lock(client: Connection['client']): Promise<void>
  createTable(client: Connection['client']): Promise<void>
  apply(client: Connection['client'], name: string): Promise<void>
  applyFunctions(client: Connection['client']): Promise<unknown>
}

export type CheckedArchive = { head: Head; key: Buffer; databaseBytes: number; fileBytes: number }

/** Reads the whole archive without writing anything. Throws unless it is complete and can be restored here. */
export async function checkArchive(
  file: string,
  keys: readonly Buffer[] | null,
  all: Migrations['all'],
): Promise<CheckedArchive> {
  const archive = await openArchive(file, (head) => keyOf(head, keys))
  checkMigrations(archive.head, all)
  const checked = { head: archive.head, key: keyOf(archive.head, keys), databaseBytes: 0, fileBytes: 0 }
  for await (const entry of archive.entries()) {
    if (entry.kind !== 'file') continue
    if (tableOf(entry.path) === undefined) checked.fileBytes += entry.size
    else checked.databaseBytes += entry.size
    for await (const _ of entry.content);
  }
  return checked
}

/** Finds the key that signed the archive. Throws unless all its keys are provided, since its secrets need them. */
function keyOf(head: Head, provided: readonly Buffer[] | null): Buffer {
  const keys = provided ?? (head.secretsKey === undefined ? [] : [Buffer.from(head.secretsKey, 'base64')])
  const byFingerprint = new Map(keys.map((key) => [keyIdOf(key), key]))
  const missing = head.keys.find((one) => !byFingerprint.has(one))
  if (missing === undefined) return byFingerprint.get(head.keys[0]!)!
  if (keys.length === 0)
    throw new BackupError(`The archive needs its SECRETS_KEY, the one with the fingerprint ${missing}.`)
  const had = [...byFingerprint.keys()].join(', ')
  throw new BackupError(
    missing === head.keys[0]
      ? `SECRETS_KEY is not the key of this archive: that one has the fingerprint ${missing}, and given is ${had}.`
      : `The archive needs an old key too, the one with the fingerprint ${missing}; name it in SECRETS_KEY_OLD.`,
  )
}

function checkMigrations({ migrations }: Head, all: Migrations['all']): void {
  const known = new Map(all.map(({ name, checksum }) => [name, checksum]))
  for (const { name, checksum } of migrations) {
    if (!known.has(name)) throw new BackupError(`The archive was made by a newer version of Berth: it has ${name}.`)
    if (known.get(name) !== checksum)
      throw new BackupError(`The archive has another ${name} than this version of Berth.`)
  }
}

export async function refuseFilledDatabase({ db }: Connection): Promise<void> {
  if ((await isEmpty(db, {}))[0]!.empty) return
  throw new BackupError('The database is not empty; a restore needs an empty one.')
}

export type Target = {
  databaseUrl: string
  dataDir: string
  artifacts: Artifacts
  searchPath: string
  migrations: Migrations
}

/**
 * The database stays empty to others until everything, including the files, is on disk; a server that starts meanwhile
 * waits for the migration lock. Returns the archive's summary, with the items that could not be restored.
 */
export async function restoreArchive(file: string, key: Buffer, target: Target): Promise<End> {
  const { dataDir, artifacts, searchPath, migrations } = target
  const archive = await openArchive(file, () => key)
  const { head } = archive
  const connection = await connectAlone(target.databaseUrl)
  const { client } = connection
  const unpack = createUnpacker(dataDir, artifacts)
  const skipped: End['incomplete'] = []

  async function loadAll(foreign: readonly string[]): Promise<void> {
    const entries = archive.entries()
    let next = await entries.next()
    /** The current entry and the following ones that belong together. */
    async function* run(belongs: (path: string) => boolean): AsyncGenerator<Extract<BackupEntry, { kind: 'file' }>> {
      for (; !next.done && belongs(next.value.path); next = await entries.next()) {
        if (next.value.kind !== 'file') throw new BadArchive(`${next.value.path} is not a file.`)
        yield next.value
      }
    }
    while (!next.done) {
      const { path } = next.value
      const [table, repository] = [tableOf(path), repositoryOf(path)]
      if (table !== undefined) {
        const columns = head.tables.find(({ name }) => name === table)
        if (!columns) throw new BadArchive(`The archive has rows of ${table}, which it does not name.`)
        const rows = contentOf(run((path) => tableOf(path) === table))
        if (!foreign.includes(table)) await writeRows(connection, columns, rows)
        else for await (const _ of rows);
      } else if (repository !== undefined) {
        const pieces = run((path) => repositoryOf(path) === repository)
        const whole = await writeRepository(join(dataDir, 'repos'), searchPath, repository, pieces)
        if (!whole) skipped.push({ what: `the repository ${repository}`, why: 'git does not accept its bundle' })
      } else {
        await unpack(next.value)
        next = await entries.next()
      }
    }
  }

  try {
    await migrations.lock(client)
    await client.query('BEGIN')
    await refuseFilledDatabase(connection)
    await migrations.createTable(client)
    const before = new Set(head.migrations.map(({ name }) => name))
    const apply = async (filter: (name: string) => boolean) => {
      for (const { name } of migrations.all) if (filter(name)) await migrations.apply(client, name)
    }
    await apply((name) => before.has(name))
    const foreign = await prepareTables(connection, head)
    for (const name of foreign) skipped.push({ what: `the table ${name}`, why: 'it is not part of Berth' })
    await loadAll(foreign)
    await finishTables(connection, head)
    await apply((name) => !before.has(name))
    await migrations.applyFunctions(client)
    await makeDurable(dataDir)
    await client.query('COMMIT')
    await client.query(analyzeTables(head.tables.filter(({ name }) => !foreign.includes(name))))
    const end = archive.end()
    return { ...end, incomplete: [...end.incomplete, ...skipped] }
  } finally {
    await connection.close().catch(() => {})
  }
}

/** Syncs whole file systems if possible: syncing a hundred thousand files one by one takes minutes. */
async function makeDurable(dataDir: string): Promise<void> {
  if (await syncFileSystems([dataDir])) return
  for (const name of ['artifacts', 'ca', 'repos']) await syncTree(join(dataDir, name))
}

async function* contentOf(entries: AsyncIterable<{ content: AsyncIterable<Buffer> }>): AsyncGenerator<Buffer> {
  for await (const { content } of entries) yield* content
}
