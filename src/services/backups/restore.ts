// Restores a backup into an empty place: checks the whole archive first, then loads the database in one transaction.
import { join } from 'node:path'
import type { Artifacts } from '../../platform/artifacts/artifacts.ts'
import { type Connection, connectAlone } from '../../platform/database/database.ts'
import { syncFileSystems, syncTree } from '../../platform/files/durable.ts'
import { BadArchive } from '../../platform/files/tar.ts'
import { keyIdOf } from '../../platform/secrets/secrets.ts'
import { type End, type Head, openArchive, type Unpacked } from './archive.ts'
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

export type Checked = { head: Head; key: Buffer; databaseBytes: number; fileBytes: number }

/** Reads the archive from end to end, and writes nothing. Throws unless it is whole, and one that can be restored here. */
export async function checkArchive(
  file: string,
  given: readonly Buffer[] | null,
  all: Migrations['all'],
): Promise<Checked> {
  const archive = await openArchive(file, (head) => keyOf(head, given))
  checkMigrations(archive.head, all)
  const checked = { head: archive.head, key: keyOf(archive.head, given), databaseBytes: 0, fileBytes: 0 }
  for await (const entry of archive.entries()) {
    if (entry.kind !== 'file') continue
    if (tableOf(entry.path) === undefined) checked.fileBytes += entry.size
    else checked.databaseBytes += entry.size
    for await (const _ of entry.content);
  }
  return checked
}

/** The key that signed the archive. Every key that it needs must be among those given, else its secrets stay closed. */
function keyOf(head: Head, given: readonly Buffer[] | null): Buffer {
  const keys = given ?? (head.secretsKey === undefined ? [] : [Buffer.from(head.secretsKey, 'base64')])
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
 * Nobody sees anything of the database before all is there, and the files are on the disk: until then it is empty, and a
 * server that starts waits for the lock of migrations. Returns what the archive says of itself, and what was left out.
 */
export async function restoreArchive(file: string, key: Buffer, target: Target): Promise<End> {
  const { dataDir, artifacts, searchPath, migrations } = target
  const archive = await openArchive(file, () => key)
  const { head } = archive
  const connection = await connectAlone(target.databaseUrl)
  const { client } = connection
  const unpack = createUnpacker(dataDir, artifacts)
  const refused: End['incomplete'] = []

  async function loadAll(foreign: readonly string[]): Promise<void> {
    const entries = archive.entries()
    let next = await entries.next()
    /** This entry and those after it that belong to the same. */
    async function* run(belongs: (path: string) => boolean): AsyncGenerator<Extract<Unpacked, { kind: 'file' }>> {
      for (; !next.done && belongs(next.value.path); next = await entries.next()) {
        if (next.value.kind !== 'file') throw new BadArchive(`${next.value.path} is no file.`)
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
        if (!whole) refused.push({ what: `the repository ${repository}`, why: 'git does not accept its bundle' })
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
    const apply = async (wanted: (name: string) => boolean) => {
      for (const { name } of migrations.all) if (wanted(name)) await migrations.apply(client, name)
    }
    await apply((name) => before.has(name))
    const foreign = await prepareTables(connection, head)
    for (const name of foreign) refused.push({ what: `the table ${name}`, why: 'it is not one of Berth' })
    await loadAll(foreign)
    await finishTables(connection, head)
    await apply((name) => !before.has(name))
    await migrations.applyFunctions(client)
    await makeDurable(dataDir)
    await client.query('COMMIT')
    await client.query(analyzeTables(head.tables.filter(({ name }) => !foreign.includes(name))))
    const end = archive.end()
    return { ...end, incomplete: [...end.incomplete, ...refused] }
  } finally {
    await connection.close().catch(() => {})
  }
}

/** Once for all files, where this machine can do that: to wait for each of a hundred thousand takes minutes. */
async function makeDurable(dataDir: string): Promise<void> {
  if (await syncFileSystems([dataDir])) return
  for (const name of ['artifacts', 'ca', 'repos']) await syncTree(join(dataDir, name))
}

async function* contentOf(entries: AsyncIterable<{ content: AsyncIterable<Buffer> }>): AsyncGenerator<Buffer> {
  for await (const { content } of entries) yield* content
}
