// A place to back up, filled with a little of everything, and an empty one to restore into.
import { randomBytes } from 'node:crypto'
import {
  chmod,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  rmdir,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import pg from 'pg'
import {
  applyFunctions,
  applyMigration,
  createMigrationTable,
  lockMigrations,
  type Migration,
  readMigrationFiles,
} from '../../../prisma/migrate.ts'
import type { Artifacts, StoredFile } from '../../../src/platform/artifacts/artifacts.ts'
import { createArtifacts, type LocalArtifacts } from '../../../src/platform/artifacts/local-artifacts.ts'
import { closeDatabase, type Database, openDatabase } from '../../../src/platform/database/database.ts'
import { newId } from '../../../src/platform/ids.ts'
import { createVault } from '../../../src/platform/secrets/secrets.ts'
import { createDataDirectory } from '../../../src/roles/opening/first-start.ts'
import { createAccount } from '../../../src/services/accounts/accounts.ts'
import { type Installation, writeBackup } from '../../../src/services/backups/backup.ts'
import { checkArchive, type Migrations, restoreArchive } from '../../../src/services/backups/restore.ts'
import { createDatabase, postgresUrl } from '../../helpers/database.ts'
import { createRepository } from '../../helpers/repository.ts'

export const searchPath = process.env.PATH!
export const never = new AbortController().signal

const cleanUps: (() => Promise<unknown>)[] = []

export async function cleanUp(): Promise<void> {
  for (const end of cleanUps.splice(0).reverse()) await end()
}

export async function newDirectory(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'berth-backup-'))
  cleanUps.push(() => rm(path, { recursive: true, force: true }))
  return path
}

export async function query<T extends pg.QueryResultRow>(url: string, sql: string): Promise<T[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query<T>(sql)).rows
  } finally {
    await client.end()
  }
}

/** The advisory locks that are held in one database. */
export const advisoryLocks = (url: string) =>
  query(
    url,
    `SELECT FROM pg_locks l JOIN pg_database d ON d.oid = l.database
     WHERE l.locktype = 'advisory' AND d.datname = current_database()`,
  )

/** Owned by a role that may do nothing else, as managed databases are. */
export async function emptyDatabase(): Promise<string> {
  const url = new URL(postgresUrl())
  const name = `t_${randomBytes(8).toString('hex')}`
  await query(url.href, `CREATE ROLE ${name} LOGIN PASSWORD '${name}'`)
  await query(url.href, `CREATE DATABASE ${name} OWNER ${name}`)
  cleanUps.push(async () => {
    await query(postgresUrl(), `DROP DATABASE ${name} WITH (FORCE)`)
    await query(postgresUrl(), `DROP ROLE ${name}`)
  })
  url.username = name
  url.password = name
  url.pathname = `/${name}`
  return url.href
}

export type FilledInstallation = Installation & {
  artifacts: LocalArtifacts
  db: Database
  projectId: string
  accountId: string
  ready(): Promise<string>
}

/** An account with a project; `ready` adds a deployment that serves a page of its own and one that all share. */
export async function newInstallation(): Promise<FilledInstallation> {
  const database = await createDatabase()
  cleanUps.push(() => database.drop())
  const db = openDatabase(database.url, 4)
  cleanUps.push(() => closeDatabase(db))
  const dataDir = await newDirectory()
  const artifacts = createArtifacts(join(dataDir, 'artifacts'))
  const keys = [randomBytes(32)] as const
  const { account } = await createAccount(db, 'one')
  const now = new Date()
  const times = { createdAt: now, updatedAt: now }
  const project = await db.project.create({
    data: {
      ...{ id: newId('prj'), accountId: account.id, name: 'site', framework: 'static', repo: 'demo/hello' },
      ...{ region: 'local-1', label: 'site', productionBranch: 'main' },
      ...{ spaFallback: false, cleanUrls: true, autoDeploy: true, ...times },
    },
  })
  const sealed = new Uint8Array(createVault(keys[0]).seal('a\tsecret\\N\n\0', 'test'))
  await db.variable.create({ data: { projectId: project.id, key: 'TOKEN', target: 'all', sealed, ...times } })
  const accountId = account.id

  async function ready(): Promise<string> {
    const id = newId('dpl')
    await publish(artifacts, id, {
      'index.html': `<h1>${id}</h1>\n`,
      'shared.css': 'body { color: red }\n'.repeat(200),
    })
    await db.deployment.create({
      data: {
        ...{ id, accountId, projectId: project.id, state: 'READY', ref: 'main', commit: 'a'.repeat(40) },
        ...{ production: false, label: `d-${id.slice(4)}`, region: 'local-1', source: 'api' },
        ...{ createdAt: now, readyAt: now, finishedAt: now },
      },
    })
    return id
  }

  return {
    ...{ databaseUrl: database.url, dataDir, artifacts, searchPath, keys, ownsKey: false },
    ...{ db, projectId: project.id, accountId, ready },
  }
}

export async function publish(artifacts: Artifacts, id: string, files: Record<string, string>): Promise<void> {
  const stored: Record<string, StoredFile> = {}
  for (const [name, text] of Object.entries(files)) {
    const content = Buffer.from(text)
    stored[name] = await artifacts.store(name, content.length, [content])
  }
  await artifacts.publish(id, { version: 1, kind: 'static', files: stored, spaFallback: false, cleanUrls: true })
}

/** A deployment with a tree of its own, as a build of a server leaves it. */
export async function addServer({ artifacts, db, ready }: FilledInstallation): Promise<string> {
  const id = await ready()
  // The page that it has of its own is no longer needed, and would not be backed up.
  const { hash } = (await artifacts.read(id))!.files['index.html']!
  await rm(artifacts.pathOf(hash))
  // Unless another page is in the same folder.
  await rmdir(dirname(artifacts.pathOf(hash))).catch(() => {})
  const tree = artifacts.serverDirectory(id)
  const deep = join(tree, 'node_modules', ...Array(20).fill('a-rather-long-name-of-a-package'))
  await mkdir(deep, { recursive: true })
  await mkdir(join(tree, 'empty'))
  await writeFile(join(deep, 'index.js'), 'export {}\n')
  await writeFile(join(tree, 'server.js'), 'run()\n')
  await chmod(join(tree, 'server.js'), 0o755)
  await symlink('../server.js', join(tree, 'node_modules/run'))
  await symlink('/elsewhere', join(tree, 'away'))
  await artifacts.publish(id, {
    ...{ version: 1, kind: 'node', root: '', files: {}, spaFallback: false, cleanUrls: true },
  })
  await db.deployment.update({ where: { id }, data: { storedBytes: 16 } })
  return id
}

export async function addOwnFiles({ dataDir }: Installation): Promise<void> {
  await mkdir(join(dataDir, 'ca'))
  await writeFile(join(dataDir, 'ca/root.key'), 'key')
  await writeFile(join(dataDir, 'ca/root.pem'), 'certificate')
  await writeFile(join(dataDir, 'test-key'), 'brt_x')
  await createRepository(join(dataDir, 'repos'), 'demo/hello')
}

export async function migrationsOf(all?: Migration[]): Promise<Migrations> {
  const files = all ?? (await readMigrationFiles())
  return {
    all: files,
    lock: lockMigrations,
    createTable: createMigrationTable,
    apply: (client, name) => applyMigration(client, files.find((one) => one.name === name)!),
    // Those of today need the tables of today.
    applyFunctions: all ? async () => [] : applyFunctions,
  }
}

export async function backUp(place: Installation): Promise<string> {
  const file = join(await newDirectory(), 'backup.tar.gz')
  await writeBackup(place, file, never)
  return file
}

/** Restores as the command does, on an empty database and directory. */
export async function restoreTo(file: string, keys: readonly Buffer[] | null, migrations?: Migrations) {
  const own = migrations ?? (await migrationsOf())
  const { key } = await checkArchive(file, keys, own.all)
  const [databaseUrl, dataDir] = [await emptyDatabase(), await newDirectory()]
  await createDataDirectory(dataDir)
  const artifacts = createArtifacts(join(dataDir, 'artifacts'))
  const end = await restoreArchive(file, key, { databaseUrl, dataDir, artifacts, searchPath, migrations: own })
  return { databaseUrl, dataDir, artifacts, end }
}

/** Every path with its mode and its content. */
export async function treeOf(root: string): Promise<string[]> {
  const found = await readdir(root, { recursive: true })
  return Promise.all(
    found.sort().map(async (path) => {
      const { mode } = await lstat(join(root, path))
      const kind = (mode & 0o170000) === 0o120000 ? 'link' : (mode & 0o170000) === 0o040000 ? 'directory' : 'file'
      if (kind === 'link') return `${path} → ${await readlink(join(root, path))}`
      if (kind === 'directory') return `${path}/`
      return `${path} ${(mode & 0o777).toString(8)} ${await readFile(join(root, path), 'hex')}`
    }),
  )
}
