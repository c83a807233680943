// The compiled program as a separate process, with some of its roles.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { freePort } from './ports.ts'
import { until } from './until.ts'

type Report = { status: string; checks: Record<string, string> }

export type Program = {
  child: ChildProcess
  /** Listeners by the name of their variable. */
  ports: Record<'PORT' | 'METRICS_PORT' | 'EDGE_HTTP_PORT' | 'EDGE_HTTPS_PORT' | 'DNS', number>
  output(): string
  /** The body of /readyz on the metrics port; null while nothing listens there. */
  readiness(): Promise<(Report & { code: number }) | null>
  metrics(): Promise<string>
  /** Resolves when it serves; rejects if it exits first. */
  ready(): Promise<void>
  /** Resolves with the exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>
}

export async function startProgram(
  roles: string,
  environment: Record<string, string>,
  ports?: Program['ports'],
  /** The limit of open files (default: the limit of this process). */
  maxFiles?: number,
): Promise<Program> {
  const own = ports ?? {
    PORT: await freePort(),
    METRICS_PORT: await freePort(),
    EDGE_HTTP_PORT: await freePort(),
    EDGE_HTTPS_PORT: await freePort(),
    DNS: await freePort(),
  }
  const limited = maxFiles === undefined ? [] : ['/bin/sh', '-c', `ulimit -n ${maxFiles}; exec "$0" "$@"`]
  const [program, ...args] = [...limited, process.execPath, 'dist/src/cli.js', 'serve', '--roles', roles]
  const child = spawn(program!, args, {
    env: {
      PATH: process.env.PATH,
      ...Object.fromEntries(Object.entries(own).map(([name, port]) => [name, String(port)])),
      NAMESERVER_LISTEN: `127.0.0.1:${own.DNS}`,
      LOG_LEVEL: 'warn',
      DRAIN_SECONDS: '0',
      ...environment,
    },
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk))
  const exited = once(child, 'exit').then(([code]) => code as number | null)
  const at = (path: string) => fetch(`http://127.0.0.1:${own.METRICS_PORT}${path}`)
  async function readiness() {
    const answer = await at('/readyz').catch(() => null)
    return answer && { code: answer.status, ...((await answer.json()) as Report) }
  }
  return {
    child,
    ports: own,
    output: () => output,
    readiness,
    metrics: async () => (await at('/metrics')).text(),
    async ready() {
      // Startup has taken 20 s on a busy machine.
      await until(async () => {
        if (child.exitCode !== null) throw new Error(`it ended before it was ready: ${output}`)
        return (await readiness())?.code === 200
      }, 90_000)
    },
    async stop(signal = 'SIGTERM') {
      child.kill(signal)
      return exited
    },
  }
}
