// What is around the containers: a network, a database, a repository host, and the settings of an operator.
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { startEmbeddedPostgres } from '../../src/embedded-postgres/index.ts'
import { forward } from '../helpers/forward.ts'
import { startGitHost } from '../helpers/git-host.ts'
import { createRepository } from '../helpers/repository.ts'
import { readCompose, type Values } from './compose.ts'
import { limits, type Machine, podman, tryPodman } from './podman.ts'

const run = promisify(execFile)

export type World = { machine: Machine; scratch: string; close(): Promise<void> }

/** Of no other installation on this machine; the last address is the one where ports are published. */
const subnet = '172.30.153'
const address = '127.77.0.1'

export async function openWorld(name: string): Promise<World> {
  const scratch = await mkdtemp(join(tmpdir(), `${name}-`))
  const closers: (() => unknown)[] = [() => rm(scratch, { recursive: true, force: true })]
  const close = async () => {
    for (const closer of closers.reverse()) await closer()
  }
  try {
    const postgres = await startEmbeddedPostgres({ directory: join(scratch, 'postgres'), maxConnections: 300 })
    closers.push(() => postgres.stop())
    const database = new URL(postgres.url('postgres'))
    const client = new pg.Client({ connectionString: database.href })
    await client.connect()
    await client.query('CREATE DATABASE berth')
    await client.end()
    const repositories = join(scratch, 'repositories')
    await makeRepositories(repositories)
    const git = await startGitHost(repositories)
    closers.push(() => git.close())

    const gateway = `${subnet}.1`
    const gitPort = Number(new URL(git.template.replace('{repo}', 'x')).port)
    const values: Values = {
      POSTGRES_PASSWORD: database.password,
      SECRETS_KEY: randomBytes(32).toString('base64'),
      BERTH_SUBNET: `${subnet}.0/24`,
      NAMESERVER_ADDRESS: `${subnet}.53`,
      DEPLOYMENT_DOMAIN: 'sites.berth-image.test',
      BASE_URL: 'https://api.sites.berth-image.test:3000',
      EDGE_ADDRESSES: '192.0.2.1',
      NAMESERVERS: 'ns1.sites.berth-image.test,ns2.sites.berth-image.test',
      GIT_URL_TEMPLATE: `http://${gateway}:${gitPort}/{repo}.git`,
      // Nothing is asked of the world: domains here are verified by nobody.
      DNS_RESOLVERS: `${subnet}.53`,
      ALLOW_DEVELOPMENT_CA: 'true',
      ALLOW_TEST_NAMESERVERS: 'true',
      ACME_EMAIL: 'operator@example.com',
      DRAIN_SECONDS: '1',
    }
    const compose = readCompose(values)
    const tun = join(scratch, 'tun')
    await run('mknod', ['-m', '0666', tun, 'c', '10', '200'])
    const machine: Machine = {
      name,
      address,
      hosts: { postgres: gateway },
      devices: { '/dev/net/tun': tun },
      values,
      compose,
    }
    await mkdir('tls', { recursive: true })
    const network = `${name}-berth`
    closers.push(() => tryPodman('network', 'rm', '--force', network))
    await podman('network', 'create', '--subnet', compose.networks.berth!.ipam.config[0]!.subnet, network)
    closers.push(() =>
      tryPodman('volume', 'rm', '--force', ...Object.keys(compose.volumes).map((one) => `${name}-${one}`)),
    )
    // The gateway has its address while there is a container.
    closers.push(() => tryPodman('rm', '--force', '--volumes', '--time', '0', `${name}-holder`))
    const holder = ['--name', `${name}-holder`, '--network', network, '--entrypoint', 'sleep', ...limits]
    await podman('run', '--detach', ...holder, compose.services.api!.image, 'infinity')
    for (const [from, to] of [
      [5432, Number(database.port)],
      [gitPort, gitPort],
    ] as const) {
      const server = await forward(gateway, from, to)
      closers.push(() => server.close())
    }
    return { machine, scratch, close }
  } catch (error) {
    await close()
    throw error
  }
}

async function makeRepositories(directory: string): Promise<void> {
  await createRepository(directory, 'acme/site', { 'index.html': '<h1>a static site</h1>\n' })
  const server = `
    const { execSync } = require('node:child_process')
    require('node:http').createServer((request, response) => {
      if (request.url !== '/') return response.end(execSync('id -u; grep -c . /proc/net/dev; ls /').toString())
      response.end('a server project')
    }).listen(process.env.PORT)`
  const manifest = { name: 'server', private: true, scripts: { start: 'node server.js' } }
  await createRepository(directory, 'acme/server', { 'package.json': JSON.stringify(manifest), 'server.js': server })
}
