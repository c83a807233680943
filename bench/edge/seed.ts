// An installation with many deployments: rows from set-based SQL, and manifests that share their files.
import { createHash } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { migrate } from '../../prisma/migrate.ts'
import type { EmbeddedPostgres } from '../../src/embedded-postgres/index.ts'
import type { Manifest } from '../../src/platform/artifacts/artifacts.ts'
import { createArtifacts } from '../../src/platform/artifacts/local-artifacts.ts'
import { withClient } from '../database.ts'

export const filePath = '/data.json'
export const fileBytes = 10 * 1024
const filesPerDeployment = 30
const domain = 'localhost'

export const deploymentHost = (number: number) => `site-${number}-x.${domain}`
export const domainHost = (number: number) => `www${number}.test`

/** Exactly 10 KB of JSON, different for every deployment. */
export function fileContent(number: number): string {
  const start = `{"number":${number},"text":"`
  return `${start}${'0123456789abcdef'.repeat(fileBytes / 16).slice(0, fileBytes - start.length - 2)}"}`
}

/** A database and a data directory with `size` deployments and as many domains, five of each per project. */
export async function seed(postgres: EmbeddedPostgres, name: string, dataDir: string, size: number): Promise<string> {
  await withClient(postgres.url(), (client) => client.query(`CREATE DATABASE ${name}`))
  const url = postgres.url(name)
  await migrate(url)
  const projects = Math.ceil(size / 5)
  const project = `'prj_' || (i - 1) % ${projects} + 1`
  await withClient(url, async (client) => {
    await client.query(`INSERT INTO account (id, name, created_at) VALUES ('acc_1', 'bench', now())`)
    // Foreign keys hold by construction, and nothing listens yet.
    await client.query('SET session_replication_role = replica')
    await client.query(
      `INSERT INTO project (id, account_id, name, framework, repo, region, label, production_branch, spa_fallback,
         clean_urls, auto_deploy, current_deployment_id, created_at, updated_at)
       SELECT 'prj_' || i, 'acc_1', 'site-' || i, 'static', 'bench/site', 'local-1', 'site-' || i, 'main', false, true, true,
         'dpl_' || i, now(), now() FROM generate_series(1, ${projects}) i`,
    )
    await client.query(
      `INSERT INTO deployment (id, account_id, project_id, state, ref, commit, production, label, region, source,
         created_at, ready_at, finished_at)
       SELECT 'dpl_' || i, 'acc_1', ${project}, 'READY', 'main', md5(i::text), true, 'site-' || i || '-x', 'local-1', 'api',
         now(), now(), now() FROM generate_series(1, ${size}) i`,
    )
    await client.query(
      `INSERT INTO domain (id, account_id, project_id, name, verified, txt_value, created_at, updated_at)
       SELECT 'dom_' || i, 'acc_1', ${project}, 'www' || i || '.test', true, 'x', now(), now()
       FROM generate_series(1, ${size}) i`,
    )
    await client.query('VACUUM (ANALYZE)')
  })
  await writeManifests(dataDir, size)
  return url
}

/** Each deployment has a unique file, so that the body cache fills; its other paths share one content. */
async function writeManifests(dataDir: string, size: number): Promise<void> {
  const artifacts = createArtifacts(join(dataDir, 'artifacts'))
  await mkdir(join(dataDir, 'artifacts/manifests'), { recursive: true })
  const place = async (number: number) => {
    const content = fileContent(number)
    const hash = createHash('sha256').update(content).digest('hex')
    const path = artifacts.pathOf(hash)
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, content)
    return { hash, size: content.length }
  }
  const shared = await place(0)
  const names = Array.from({ length: filesPerDeployment - 1 }, (_, i) => `assets/part-${i}.json`)
  const others = Object.fromEntries(names.map((name) => [name, shared]))
  for (let number = 1; number <= size; number++) {
    const files: Manifest['files'] = { [filePath.slice(1)]: await place(number), ...others }
    const manifest: Manifest = { version: 1, kind: 'static', files, spaFallback: false, cleanUrls: true }
    await writeFile(join(dataDir, `artifacts/manifests/dpl_${number}.json`), JSON.stringify(manifest))
  }
}
