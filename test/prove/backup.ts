// A backup of the platform while it runs, restored into another directory, whose API must answer the same.
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { freePort } from '../helpers/ports.ts'
import { until } from '../helpers/until.ts'
import type { Client } from './client.ts'
import { readAll } from './ledger.ts'

const run = promisify(execFile)
const program = join(import.meta.dirname, '../../dist/src/cli.js')

export type BackupOptions = {
  directory: string
  environment: Record<string, string>
  client: Client
  clientOf(origin: string): Client
}

/** Differences between the platform and its restored copy; null where `berth` has no backup. */
export async function proveBackup({
  directory,
  environment,
  client,
  clientOf,
}: BackupOptions): Promise<string[] | null> {
  const { stdout: usage } = await run(process.execPath, [program, '--help'], { env: { PATH: environment.PATH } })
  if (!/berth backup/.test(usage)) return null
  const archive = join(directory, 'backup.tar')
  const before = await resources(client)
  await run(process.execPath, [program, 'backup', archive], { env: environment, cwd: directory })
  const home = join(directory, 'restored')
  await mkdir(home)
  const ports = ['PORT', 'METRICS_PORT', 'EDGE_HTTP_PORT', 'EDGE_HTTPS_PORT']
  const env = { ...environment, DATABASE_URL: '', DATA_DIR: join(home, 'data') } as Record<string, string>
  for (const name of ports) env[name] = String(await freePort())
  await run(process.execPath, [program, 'restore', archive], { env, cwd: home })
  const restored = spawn(process.execPath, [program, 'serve', '--roles', 'api'], { env, cwd: home, stdio: 'ignore' })
  const gone = once(restored, 'exit')
  try {
    const origin = `http://127.0.0.1:${env.PORT}`
    const isReady = () => fetch(`${origin}/readyz`).then((response) => response.ok)
    await until(() => isReady().catch(() => false), 240_000)
    const after = await resources(clientOf(origin))
    const differing = [...before]
      .filter(([key, text]) => after.get(key) !== text)
      .map(([key]) => `not restored: ${key}`)
    const manifests = 'data/artifacts/manifests'
    const lost = readdirSync(join(directory, manifests)).filter(
      (name) => before.has(`deployment ${name.replace('.json', '')}`) && !existsSync(join(home, manifests, name)),
    )
    return [
      ...differing,
      ...lost.map((name) => `not restored: the files of ${name}`),
      ...[...after.keys()].filter((key) => !before.has(key)).map((key) => `restored in excess: ${key}`),
    ]
  } finally {
    restored.kill('SIGTERM')
    await gone
  }
}

/** What every resource looks like, but for what goes on by itself. */
async function resources(client: Client): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  for (const [kind, rows] of await readAll(client)) {
    for (const { key, fields } of rows) {
      const { lastUsedAt, verification, certificate, url, branchUrl, productionUrl, ...rest } = fields
      found.set(`${kind} ${key}`, JSON.stringify(rest))
    }
  }
  return found
}
