// `berth backup <file>`: writes everything into one archive, even while a server runs.
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Config } from '../config.ts'
import { openArtifacts } from '../platform/storage/open-artifacts.ts'
import { readSecretsKey } from '../roles/opening/first-start.ts'
import { openPostgres, refuseHalfRestored } from '../roles/opening/storage.ts'
import { writeBackup } from '../services/backups/index.ts'
import { UsageError } from './usage-error.ts'

export async function backup(config: Config, name: string): Promise<void> {
  const file = resolve(name)
  refuseHalfRestored(config.dataDir)
  if (!config.databaseUrl && !existsSync(join(config.dataDir, 'postgres'))) {
    throw new UsageError(`There is nothing to back up in ${config.dataDir}.`)
  }
  const interrupted = new AbortController()
  const interrupt = () => interrupted.abort()
  process.once('SIGINT', interrupt)
  process.once('SIGTERM', interrupt)
  const artifacts = openArtifacts(config)
  const postgres = await openPostgres(config, { beside: true })
  try {
    const source = {
      databaseUrl: postgres.url,
      dataDir: config.dataDir,
      artifacts,
      searchPath: config.searchPath,
      keys: [await readSecretsKey(config), ...config.oldSecretsKeys] as const,
      ownsKey: config.secretsKey === null,
    }
    const { bytes, deployments, incomplete } = await writeBackup(source, file, interrupted.signal)
    for (const { what, why } of incomplete) console.error(`berth: ${what} is not complete: ${why}.`)
    console.log(`Wrote ${file} (${megabytes(bytes)}): the database and the files of ${deployments} deployments.`)
  } finally {
    process.off('SIGINT', interrupt)
    process.off('SIGTERM', interrupt)
    await postgres.close()
    artifacts.close()
  }
}

export function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`
}
