// The platform as customers use it: projects and deployments through its API, timed from outside.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createCaller } from '../caller.ts'
import { freePort, startPlatform, withoutLimits } from '../children.ts'
import type { Scratch } from '../group.ts'

export type Platform = {
  /** The API's URL, and its token. */
  url: string
  token: string
  edgePort: number
  createProject(name: string, body: object): Promise<void>
  /** Milliseconds from the request until the API reports READY. */
  deploy(project: string): Promise<number>
  /** Whether builds ran in a sandbox. */
  sandboxed(): Promise<boolean>
}

type Deployment = { id: string; state: string; errorMessage?: string }

export async function openPlatform(bench: Scratch, gitUrlTemplate: string): Promise<Platform> {
  const { directory } = bench
  const postgres = await bench.startPostgres()
  const port = await freePort()
  const edgePort = await freePort()
  const logFile = join(directory, 'server.log')
  const environment = {
    DATABASE_URL: postgres.url(),
    DATA_DIR: join(directory, 'data'),
    PORT: String(port),
    EDGE_HTTP_PORT: String(edgePort),
    EDGE_HTTPS_PORT: '0',
    METRICS_PORT: '0',
    GIT_URL_TEMPLATE: gitUrlTemplate,
    ...withoutLimits,
  }
  const child = await startPlatform(['api', 'worker', 'runner', 'edge'], environment, logFile)
  bench.atEnd(() => child.stop())
  const token = await child.ask<string>('token')

  const call = createCaller(port, token)
  return {
    url: `http://127.0.0.1:${port}`,
    token,
    edgePort,
    async createProject(name, body) {
      await call('POST', '/projects', { name, ...body })
    },
    async deploy(project) {
      const startedMs = performance.now()
      let deployment = await call<Deployment>('POST', '/deployments', { project })
      while (deployment.state === 'BUILDING') {
        deployment = await call<Deployment>('GET', `/deployments/${deployment.id}?wait=30`)
      }
      const tookMs = performance.now() - startedMs
      if (deployment.state === 'READY') return tookMs
      type Lines = { lines: { step: string; text: string }[] }
      const { lines } = await call<Lines>('GET', `/deployments/${deployment.id}/logs?limit=1000`)
      const said = lines.map(({ step, text }) => `${step}: ${text}`).join('\n')
      throw new Error(`The deployment of ${project} is ${deployment.state}:\n${said}`)
    },
    sandboxed: async () => !(await readFile(logFile, 'utf8')).includes('"driver":"none"'),
  }
}
