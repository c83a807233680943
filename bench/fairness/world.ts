// Two tenants on one platform: an honest one with a page, a zone and a project, and a hostile one.
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { EmbeddedPostgres } from '../../src/embedded-postgres/index.ts'
import { closeDatabase, openDatabase } from '../../src/platform/database/database.ts'
import { createAccount } from '../../src/services/accounts/index.ts'
import { createCaller } from '../caller.ts'
import { type Child, freePort, startPlatform } from '../children.ts'
import { createDnsClient } from '../dns/client.ts'
import type { Hostile } from './attacks.ts'
import type { Honest } from './honest.ts'

export type World = { server: Child; honest: Omit<Honest, 'seconds' | 'perSecond'>; hostile: Hostile }

const run = promisify(execFile)

export async function startWorld(postgres: EmbeddedPostgres, directory: string, records: number): Promise<World> {
  const [apiPort, edgePort] = [await freePort(), await freePort()]
  const [dnsPort, otherDnsPort] = [await freePort(), await freePort()]
  const dataDir = join(directory, 'data')
  const environment = {
    DATABASE_URL: postgres.url('postgres'),
    DATA_DIR: dataDir,
    PORT: String(apiPort),
    EDGE_HTTP_PORT: String(edgePort),
    EDGE_HTTPS_PORT: '0',
    NAMESERVER_LISTEN: `127.0.0.1:${dnsPort},127.0.0.1:${otherDnsPort}`,
    METRICS_PORT: '0',
    RATE_LIMIT_PER_MINUTE: '100000000',
    // The limits of an operator who trusts a tenant with a large zone.
    QUOTA_RECORDS_PER_ZONE: '100000',
    QUOTA_OPEN_TICKETS: '100000000',
    QUOTA_MESSAGES_PER_MONTH: '100000000',
  }
  const server = await startPlatform(
    ['api', 'worker', 'edge', 'nameserver'],
    environment,
    join(directory, 'server.log'),
  )
  const token = await server.ask<string>('token')
  const hostileToken = await newAccount(environment.DATABASE_URL, 'hostile')

  const honestly = createCaller(apiPort, token)
  const { id } = await honestly<{ id: string }>('POST', '/deployments', { project: 'hello' })
  const deployed = await honestly<{ state: string; url: string }>('GET', `/deployments/${id}?wait=30`)
  if (deployed.state !== 'READY') throw new Error(`the page is ${deployed.state}`)
  await honestly('POST', '/domains', { project: 'hello', name: 'honest.test' })
  await honestly('POST', '/dns/honest.test/records', { type: 'A', name: 'www', value: '192.0.2.1' })
  await answered(dnsPort, 'www.honest.test')

  await makeRepository(dataDir, directory)
  const badly = createCaller(apiPort, hostileToken)
  await badly('POST', '/projects', { name: 'sleeper', repo: 'hostile/sleeper', framework: 'vite' })
  await badly('POST', '/domains', { project: 'sleeper', name: 'hostile.test' })
  const { id: deployment } = await badly<{ id: string }>('POST', '/deployments', { project: 'sleeper' })
  return {
    server,
    honest: { apiPort, token, edgePort, edgeHost: new URL(deployed.url).host, dnsPort, dnsName: 'www.honest.test' },
    hostile: { apiPort, token: hostileToken, zone: 'hostile.test', project: 'sleeper', deployment, records },
  }
}

export async function newAccount(url: string, name: string): Promise<string> {
  const db = openDatabase(url, 1)
  try {
    return (await createAccount(db, name)).token
  } finally {
    await closeDatabase(db)
  }
}

export async function answered(port: number, name: string): Promise<void> {
  const dnsClient = await createDnsClient(port)
  try {
    for (let tries = 0; tries < 200; tries++) {
      if ((await dnsClient.query(name, 'A', 500))?.answers === 1) return
      await sleep(20)
    }
    throw new Error(`${name} is not answered`)
  } finally {
    dnsClient.close()
  }
}

/** A repository whose build only sleeps. */
async function makeRepository(dataDir: string, directory: string): Promise<void> {
  const work = await mkdtemp(join(directory, 'work-'))
  await writeFile(join(work, 'package.json'), JSON.stringify({ private: true, scripts: { build: 'sleep 600' } }))
  const bare = join(dataDir, 'repos/hostile/sleeper.git')
  await mkdir(join(dataDir, 'repos/hostile'), { recursive: true })
  const git = (...args: string[]) => run('git', ['-c', 'user.name=bench', '-c', 'user.email=bench@localhost', ...args])
  await git('init', '-q', '-b', 'main', work)
  await git('-C', work, 'add', '.')
  await git('-C', work, 'commit', '-q', '-m', 'Sleep')
  await git('clone', '-q', '--bare', work, bare)
}
