// An installation with a process per role, a site on its own domain, and a certificate.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { openSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Call, createCaller } from '../caller.ts'
import { freePort, withoutLimits } from '../children.ts'
import { makeSite } from '../soak/site.ts'

export const roles = ['api', 'worker', 'edge', 'nameserver'] as const
export type Role = (typeof roles)[number]

export type Installation = {
  pids: Record<Role, number>
  ports: { api: number; http: number; https: number; dns: number }
  call: Call
  token: string
  project: string
  /** A verified domain that serves the site, and the project's own host. */
  domain: string
  host: string
  stop(): Promise<void>
}

export async function startInstallation(program: string, url: string, directory: string): Promise<Installation> {
  const ports = { api: await freePort(), http: await freePort(), https: await freePort(), dns: await freePort() }
  const dataDir = join(directory, 'data')
  const environment = {
    PATH: process.env.PATH,
    ...withoutLimits,
    RATE_LIMIT_PER_ACCOUNT_PER_MINUTE: '1000000000',
    MAX_IN_FLIGHT_PER_ACCOUNT: '1000',
    DATABASE_URL: url,
    DATA_DIR: dataDir,
    PORT: String(ports.api),
    EDGE_HTTP_PORT: String(ports.http),
    EDGE_HTTPS_PORT: String(ports.https),
    NAMESERVER_LISTEN: `127.0.0.1:${ports.dns}`,
    DRAIN_SECONDS: '0',
  }
  const stops: (() => Promise<unknown>)[] = []
  async function start(role: Role): Promise<number> {
    const metricsPort = await freePort()
    const logFile = join(directory, `${role}.log`)
    const log = openSync(logFile, 'a')
    const child = spawn(process.execPath, [program, 'serve', '--roles', role], {
      env: { ...environment, METRICS_PORT: String(metricsPort) },
      stdio: ['ignore', log, log],
    })
    const exited = once(child, 'exit')
    stops.push(async () => {
      if (child.exitCode === null) child.kill('SIGTERM')
      await exited
    })
    await until(`the ${role}`, async () => {
      if (child.exitCode !== null) throw new Error(`the ${role} ended:\n${await readFile(logFile, 'utf8')}`)
      return (await fetch(`http://127.0.0.1:${metricsPort}/readyz`).catch(() => null))?.ok
    })
    return child.pid!
  }
  const stop = async () => {
    for (const one of stops.reverse()) await one()
  }
  try {
    const pids = {} as Record<Role, number>
    for (const role of roles) pids[role] = await start(role)
    const token = (await readFile(join(dataDir, 'test-key'), 'utf8')).trim()
    const call = createCaller(ports.api, token)
    const project = 'bench'
    const domain = 'bench.test'
    await makeSite(join(dataDir, 'repos/bench/site.git'))
    await call('POST', '/projects', { name: project, framework: 'static', repo: 'bench/site' })
    const made = await call<{ id: string }>('POST', '/deployments', { project, production: true })
    const state = async () => (await call<{ state: string }>('GET', `/deployments/${made.id}?wait=10`)).state
    await until('the site', async () => (await state()) === 'READY')
    await call('POST', '/domains', { project, name: domain })
    const ssl = async () => (await call<{ ssl: string }>('GET', `/domains/${domain}?wait=10`)).ssl
    await until('the certificate', async () => (await ssl()) === 'ACTIVE')
    return { pids, ports, call, token, project, domain, host: `${project}.localhost`, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

async function until(what: string, look: () => Promise<boolean | undefined>): Promise<void> {
  const endMs = performance.now() + 120_000
  while (!(await look())) {
    if (performance.now() > endMs) throw new Error(`waited in vain for ${what}`)
    await sleep(50)
  }
}
