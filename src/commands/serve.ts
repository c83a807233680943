// `berth serve`: runs roles until it is stopped, and prints their URLs.
import cluster from 'node:cluster'
import { constants } from 'node:os'
import { join, relative } from 'node:path'
import { type Config, workerCount } from '../config.ts'
import { openStandardOutput } from '../platform/observe/terminal.ts'
import { serveWorker } from '../roles/cluster-worker.ts'
import { rolesOfWorkers } from '../roles/opening/messages.ts'
import { type Role, type Running, roles, run } from '../roles/run.ts'
import { UsageError } from './usage-error.ts'

export type ServeOptions = { roles?: string | undefined; workers?: string | undefined }

export async function serve(config: Config, options: ServeOptions): Promise<void> {
  if (cluster.isWorker) return serveWorker(config)
  const selected = (options.roles?.split(',') ?? [...roles]) as Role[]
  const unknown = selected.find((role) => !roles.includes(role))
  if (unknown !== undefined) throw new UsageError(`There is no role ${unknown}. Use ${roles.join(', ')}.`)
  const workers = workersOf(config, options.workers, selected)
  const stopped = Promise.withResolvers<void>()
  let running: Running | null = null
  let stopping = false
  const stop = (drain: boolean): void => {
    // It may be waiting for the schema. In a container, nothing else would end process 1.
    if (!running) process.exit()
    stopping = true
    running.stop(drain).then(stopped.resolve, stopped.reject)
  }
  onSignals(stop)
  const terminal = openStandardOutput(config)
  const berth = await run(config, selected, { workers, terminal }).finally(() => terminal?.status(null))
  running = berth
  if (berth.replaceWorkers) process.on('SIGHUP', () => void berth.replaceWorkers?.())
  berth.broken.then((reason) => {
    if (stopping) return
    console.error(`berth: ${reason}`)
    process.exitCode = 1
    stop(false)
  })
  printBanner(config, selected, berth)
  await stopped.promise
}

function workersOf(config: Config, text: string | undefined, selected: readonly Role[]): number {
  if (text === undefined) return config.workers
  if (!/^(auto|\d{1,3})$/.test(text)) throw new UsageError('--workers must be a number, or auto for one per processor.')
  if (!selected.some((role) => rolesOfWorkers.includes(role))) {
    throw new UsageError(`--workers is for the roles ${rolesOfWorkers.join(' and ')}.`)
  }
  return workerCount(text)
}

// npm forwards signals that its whole process group already got, so one Ctrl-C arrives twice.
const sameSignalMs = 500

/** The first signal shuts down: SIGTERM with a drain, SIGINT without. The second one exits at once. */
function onSignals(stop: (drain: boolean) => void): void {
  let firstMs: number | null = null
  const onSignal = (_name: NodeJS.Signals, number: number) => {
    const nowMs = performance.now()
    if (firstMs === null) {
      firstMs = nowMs
      stop(number === constants.signals.SIGTERM)
    } else if (nowMs - firstMs > sameSignalMs) process.exit(128 + number)
  }
  process.on('SIGINT', onSignal)
  process.on('SIGTERM', onSignal)
}

type Banner = Pick<Running, 'testKey' | 'setupUrl'>

function printBanner(config: Config, selected: readonly Role[], { testKey, setupUrl }: Banner): void {
  const api = `${config.baseUrl}/api`
  const path = join(config.dataDir, 'test-key')
  const keyFile = relative('.', path).startsWith('..') ? path : relative('.', path)
  const lines: string[] = []
  if (selected.includes('api')) {
    lines.push(`API        ${api}      (reference: ${config.baseUrl}/docs)`)
    const once = setupUrl ? `  (sign in once: ${setupUrl})` : ''
    lines.push(`Dashboard  ${new URL(config.baseUrl).origin}${once}`)
  }
  if (selected.includes('edge')) {
    const { domain, httpPort, httpsPort } = config.edge
    lines.push(`Edge       http://${domain}:${httpPort}  https://${domain}:${httpsPort}`)
  }
  if (selected.includes('nameserver')) {
    const listeners = config.nameserverListen.map((address, index) => `${address} (ns${index + 1})`)
    lines.push(`DNS        ${listeners.join('  ')}`)
  }
  if (testKey) lines.push(`Test key   ${testKey}            (also in ${keyFile}, mode 0600)`)
  if (selected.includes('api') && !config.production) {
    lines.push(`Try        curl -H "Authorization: Bearer $(cat ${keyFile})" ${api}/projects`)
  }
  console.log(lines.join('\n'))
}
