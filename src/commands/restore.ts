// `berth restore <file>`: restores an archive into an empty data directory and database.
import { access, constants, mkdir, readdir, rm, statfs, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import {
  applyFunctions,
  applyMigration,
  createMigrationTable,
  lockMigrations,
  readMigrationFiles,
} from '../../prisma/migrate.ts'
import type { Config } from '../config.ts'
import { connectAlone } from '../platform/database/database.ts'
import { syncPath } from '../platform/files/durable.ts'
import { openArtifacts } from '../platform/storage/open-artifacts.ts'
import { createDataDirectory, writePrivately } from '../roles/opening/first-start.ts'
import { openPostgres, restoreMark } from '../roles/opening/storage.ts'
import { checkArchive, type Migrations, refuseFilledDatabase, restoreArchive } from '../services/backups/index.ts'
import { megabytes } from './backup.ts'
import { UsageError } from './usage-error.ts'

export async function restore(config: Config, name: string): Promise<void> {
  const { dataDir, databaseUrl } = config
  const file = resolve(name)
  await access(file, constants.R_OK).catch((error) => {
    throw new UsageError(`The archive cannot be read: ${error.message}.`)
  })
  await refuseFilledDirectory(dataDir)
  const migrations = await ownMigrations()
  // In development, the archive's key is used unless one is set.
  const keys = config.secretsKey ? [config.secretsKey, ...config.oldSecretsKeys] : null
  const { head, key, databaseBytes, fileBytes } = await checkArchive(file, keys, migrations.all)
  await mkdir(dataDir, { recursive: true, mode: 0o711 })
  // Indexes take about as much space as the rows.
  await refuseFullDisk(dataDir, (config.artifacts ? 0 : fileBytes) + (databaseUrl ? 0 : 2 * databaseBytes))
  if (databaseUrl) await withDatabase(databaseUrl, refuseFilledDatabase)

  const mark = restoreMark(dataDir)
  await writeFile(mark, `${file}\n`, { flag: 'wx' })
  await createDataDirectory(dataDir)
  if (!config.secretsKey) await writePrivately(join(dataDir, 'secrets-key'), `${key.toString('base64')}\n`)
  const artifacts = openArtifacts(config)
  try {
    const postgres = await openPostgres(config, { beside: false })
    try {
      const target = { databaseUrl: postgres.url, dataDir, artifacts, searchPath: config.searchPath, migrations }
      const { deployments, incomplete } = await restoreArchive(file, key, target)
      for (const { what, why } of incomplete) console.error(`berth: ${what} is not complete: ${why}.`)
      console.log(`Restored the database as of ${head.createdAt} and the files of ${deployments} deployments.`)
    } finally {
      await postgres.close()
      artifacts.close()
    }
  } catch (error) {
    console.error(`berth: The restore failed, so ${dataDir} is incomplete. Empty it and restore again.`)
    const { code } = error as { code?: string }
    // The second code is PostgreSQL's.
    throw code === 'ENOSPC' || code === '53100' ? new UsageError('The disk is full.') : error
  }
  await rm(mark)
  await syncPath(dataDir)
}

async function ownMigrations(): Promise<Migrations> {
  const all = await readMigrationFiles()
  return {
    all,
    lock: lockMigrations,
    createTable: createMigrationTable,
    apply: (client, name) => applyMigration(client, all.find((one) => one.name === name)!),
    applyFunctions,
  }
}

async function refuseFilledDirectory(path: string): Promise<void> {
  const names = await readdir(path).catch(() => [])
  // Created by the file system itself.
  if (names.every((name) => name === 'lost+found')) return
  throw new UsageError(`${path} is not empty; a restore needs an empty DATA_DIR.`)
}

async function refuseFullDisk(path: string, bytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(path)
  if (bytes <= bavail * bsize) return
  throw new UsageError(`The archive needs ${megabytes(bytes)} at ${path}, where ${megabytes(bavail * bsize)} are free.`)
}

async function withDatabase(url: string, check: typeof refuseFilledDatabase): Promise<void> {
  const connection = await connectAlone(url)
  try {
    await check(connection)
  } finally {
    await connection.close()
  }
}
