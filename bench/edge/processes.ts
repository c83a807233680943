// The edge as in production: compiled, started by its CLI with only the edge role, stopped by its PID.
import { execFile, spawn } from 'node:child_process'
import { openSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { buildParts } from '../../build/parts.ts'
import { freePort } from '../children.ts'

const run = promisify(execFile)

export type EdgeProcess = {
  port: number
  pid: number
  residentBytes(): Promise<number>
  stop(): Promise<void>
}

/**
 * The platform's CLI, built if its sources changed. Node could strip the types itself, but the stripper would count as
 * measured memory.
 */
export async function compiledProgram(): Promise<string> {
  const { server } = await buildParts(['server'])
  return join(server, 'src/cli.js')
}

export async function startEdge(
  program: string,
  environment: Record<string, string>,
  logFile: string,
  roles = 'edge',
): Promise<EdgeProcess> {
  const port = await freePort()
  const log = openSync(logFile, 'a')
  // For a profile: BENCH_NODE_ARGS='--cpu-prof --cpu-prof-dir=profiles'.
  const nodeArgs = (process.env.BENCH_NODE_ARGS ?? '').split(' ').filter((arg) => arg !== '')
  const child = spawn(process.execPath, [...nodeArgs, program, 'serve', '--roles', roles], {
    env: {
      PATH: process.env.PATH,
      METRICS_PORT: '0',
      DRAIN_SECONDS: '0',
      EDGE_HTTP_PORT: String(port),
      EDGE_HTTPS_PORT: '0',
      ...environment,
    },
    stdio: ['ignore', log, log],
  })
  let running = true
  const exited = new Promise<void>((resolve) => {
    child.once('exit', () => {
      running = false
      resolve()
    })
  })
  const edge: EdgeProcess = {
    port,
    pid: child.pid!,
    async residentBytes() {
      const { stdout } = await run('ps', ['-o', 'rss=', '-p', String(child.pid)])
      return Number(stdout) * 1024
    },
    async stop() {
      if (running) child.kill('SIGTERM')
      await exited
    },
  }
  for (let tries = 0; tries < 1_200 && running; tries++) {
    const answers = await fetch(`http://127.0.0.1:${port}/`).then(
      (response) => response.arrayBuffer().then(() => true),
      () => false,
    )
    if (answers) return edge
    await sleep(50)
  }
  await edge.stop()
  throw new Error(`the edge did not start:\n${await readFile(logFile, 'utf8')}`)
}
