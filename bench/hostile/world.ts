// A platform with every role, an honest tenant with a page and a zone, and a hostile one with a server and hostile sites.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { EmbeddedPostgres } from '../../src/embedded-postgres/index.ts'
import { type Call, createCaller } from '../caller.ts'
import { type Child, freePort, startPlatform, withoutLimits } from '../children.ts'
import type { Honest } from '../fairness/honest.ts'
import { answered, newAccount } from '../fairness/world.ts'
import { ruledSites, tarOf } from './files.ts'
import type { Target } from './surface.ts'

export type World = {
  server: Child
  honest: Omit<Honest, 'seconds' | 'perSecond'>
  target: Omit<Target, 'bytes'>
}

type Deployment = { id: string; state: string; url: string }

export async function startWorld(postgres: EmbeddedPostgres, directory: string): Promise<World> {
  const [apiPort, edgePort, httpsPort] = [await freePort(), await freePort(), await freePort()]
  const [dnsPort, otherDnsPort] = [await freePort(), await freePort()]
  // The usual maximum for customers' zones; beyond it, requests are refused.
  const { QUOTA_RECORDS_PER_ZONE: _, ...limits } = withoutLimits
  const environment = {
    ...limits,
    RATE_LIMIT_PER_ACCOUNT_PER_MINUTE: '1000000000',
    DATABASE_URL: postgres.url('postgres'),
    DATA_DIR: join(directory, 'data'),
    PORT: String(apiPort),
    EDGE_HTTP_PORT: String(edgePort),
    EDGE_HTTPS_PORT: String(httpsPort),
    NAMESERVER_LISTEN: `127.0.0.1:${dnsPort},127.0.0.1:${otherDnsPort}`,
    METRICS_PORT: '0',
  }
  const roles = ['api', 'worker', 'runner', 'edge', 'nameserver'] as const
  const server = await startPlatform([...roles], environment, join(directory, 'server.log'))

  const token = await server.ask<string>('token')
  const honestly = createCaller(apiPort, token)
  const { id } = await honestly<Deployment>('POST', '/deployments', { project: 'hello' })
  const page = await ready(honestly, id)
  await honestly('POST', '/domains', { project: 'hello', name: 'honest.test' })
  await honestly('POST', '/dns/honest.test/records', { type: 'A', name: 'www', value: '192.0.2.1' })
  await answered(dnsPort, 'www.honest.test')

  const hostileToken = await newAccount(environment.DATABASE_URL, 'hostile')
  const badly = createCaller(apiPort, hostileToken)
  const deploy = deployer(apiPort, hostileToken, badly)
  const program = await readFile(join(import.meta.dirname, 'program.mjs'), 'utf8')
  const start = JSON.stringify({ private: true, scripts: { start: 'exec node program.mjs' } })
  const host = await deploy('server', { 'package.json': start, 'program.mjs': program })
  if (host === null) throw new Error('the hostile server was refused')
  await badly('POST', '/projects', { name: 'archives', framework: 'static' })
  await badly('POST', '/domains', { project: 'server', name: 'hostile.test' })
  await encrypted(badly, 'hostile.test')
  const sites: Record<string, string> = {}
  for (const [index, [name, files]] of Object.entries(ruledSites).entries()) {
    const site = await deploy(`rules-${index}`, files, 'static')
    if (site !== null) sites[name] = site
  }
  return {
    server,
    honest: { apiPort, token, edgePort, edgeHost: new URL(page.url).host, dnsPort, dnsName: 'www.honest.test' },
    target: {
      ...{ apiPort, token: hostileToken, edgePort, httpsPort, dnsPort },
      ...{ dnsName: 'www.honest.test', zone: 'hostile.test', server: host, sites },
    },
  }
}

async function ready(call: Call, id: string): Promise<Deployment> {
  const deployed = await call<Deployment>('GET', `/deployments/${id}?wait=60`)
  if (deployed.state !== 'READY') throw new Error(`deployment ${id} is ${deployed.state}`)
  return deployed
}

async function encrypted(call: Call, domain: string): Promise<void> {
  for (let tries = 0; tries < 12; tries++) {
    if ((await call<{ ssl: string }>('GET', `/domains/${domain}?wait=10`)).ssl === 'ACTIVE') return
  }
  throw new Error(`${domain} has no certificate`)
}

/** Creates a project from files; resolves with its host, or null if the platform refuses them. */
function deployer(port: number, token: string, call: Call) {
  return async (name: string, files: Record<string, string>, framework = 'auto'): Promise<string | null> => {
    await call('POST', '/projects', { name, framework })
    const response = await fetch(`http://127.0.0.1:${port}/api/deployments?project=${name}&production=true`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/x-tar' },
      body: tarOf(files),
    })
    if (!response.ok) throw new Error(`${name}: ${response.status} ${await response.text()}`)
    const { id } = (await response.json()) as Deployment
    const { state, url } = await call<Deployment>('GET', `/deployments/${id}?wait=60`)
    return state === 'READY' ? new URL(url).host : null
  }
}
