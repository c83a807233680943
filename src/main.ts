// The composition root: configuration → database → roles, closed in reverse.
import { readFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import type { Server } from 'node:tls'
import { destination, type Logger, pino } from 'pino'
import { collectDefaultMetrics, Registry } from 'prom-client'
import { migrate } from '../prisma/migrate.ts'
import { buildApp } from './app.ts'
import { createArtifacts } from './artifacts.ts'
import { keepOwnCertificate } from './certificates/own-certificate.ts'
import { createCertificateStore, handshakeTimeoutMs, minVersion } from './certificates/store.ts'
import type { Config } from './config.ts'
import { closeDatabase, type Database, openDatabase } from './db.ts'
import type { Deps } from './deps.ts'
import { startEmbeddedPostgres } from './embedded-postgres.ts'
import { createEdge } from './engines/edge/server.ts'
import { createNameserver } from './engines/nameserver/server.ts'
import { createTransfers } from './engines/nameserver/transfer/transfers.ts'
import { makeDataDirectory, makeDemo, readSecretsKey } from './first-start.ts'
import { serveMetrics } from './metrics-server.ts'
import { listen } from './notifications.ts'
import { createRepositories } from './repositories.ts'
import { createSandbox, type Sandbox } from './sandbox/sandbox.ts'
import { askPackageRegistry } from './sandbox-hosts.ts'
import { createVault } from './secrets.ts'
import { openServers } from './servers.ts'
import { forgetOldKeys } from './services/idempotency-keys.ts'
import { forgetOldPushes } from './services/pushes.ts'
import { createTokenDirectory } from './services/token-directory.ts'
import { startWorkerRole } from './worker.ts'

export const roles = ['api', 'worker', 'edge', 'nameserver'] as const
export type Role = (typeof roles)[number]

export type Running = {
  /** Set at the first start on an empty database; shown once. */
  testKey: string | null
  /** Resolves with a sentence if something that Berth cannot live without ends by itself. */
  broken: Promise<string>
  stop(): Promise<void>
}

/** A clean stop waits this long for requests under way. */
const drainMs = 10_000
const housekeepingMs = 10 * 60_000

/** The database to work on: the configured one, or an embedded one that lives as long as this process. */
export async function openStorage(
  config: Config,
): Promise<{ db: Database; url: string; broken: Promise<string>; close(): Promise<void> }> {
  await makeDataDirectory(config.dataDir)
  const embedded = config.databaseUrl
    ? null
    : await startEmbeddedPostgres({ directory: join(config.dataDir, 'postgres') })
  const url = config.databaseUrl ?? embedded!.url('postgres')
  try {
    await migrate(url)
  } catch (error) {
    await embedded?.stop()
    throw error
  }
  const db = openDatabase(url, config.databasePool)
  return {
    db,
    url,
    broken: embedded?.exited ?? new Promise(() => {}),
    async close() {
      await closeDatabase(db)
      await embedded?.stop()
    },
  }
}

export async function start(config: Config, wanted: readonly Role[]): Promise<Running> {
  const log = pino({ level: config.logLevel, redact: ['req.headers.authorization'] }, destination({ sync: false }))
  const closers: (() => Promise<unknown>)[] = []
  const stop = async () => {
    for (const close of closers.splice(0).reverse()) await close()
  }
  try {
    const storage = await openStorage(config)
    closers.push(() => storage.close())
    const { db, url } = storage
    const vault = createVault(await readSecretsKey(config), config.oldSecretsKeys)
    const notifications = await listen(url, log)
    closers.push(() => notifications.close())
    const testKey = config.production || !wanted.includes('api') ? null : await makeDemo(db, config)

    const repositories = createRepositories(
      config.gitUrlTemplate,
      config.production ? null : join(config.dataDir, 'repos'),
      config.searchPath,
    )
    const artifacts = createArtifacts(join(config.dataDir, 'artifacts'))
    const registry = new Registry()
    collectDefaultMetrics({ register: registry })
    const shared = { config, db, notifications, vault, repositories, artifacts, log, registry }
    const needsSandbox = wanted.includes('edge') || wanted.includes('worker')
    const hosting = needsSandbox
      ? { sandbox: await openSandbox(config, log), packageRegistry: askPackageRegistry(log) }
      : null
    if (hosting) closers.push(() => hosting.sandbox.close())
    const servers = hosting && openServers({ ...shared, ...hosting, proofsOnly: !wanted.includes('edge') })
    if (servers && wanted.includes('edge')) {
      const edge = createEdge({ ...shared, servers })
      await edge.listen()
      closers.push(() => edge.close())
    } else if (servers) closers.push(() => servers.close())
    if (wanted.includes('nameserver')) {
      const { nameserverTsig: key, nameserverSecondaries: secondaries } = config
      const nameserver = createNameserver({
        ...shared,
        resolvers: config.dnsResolvers,
        // Beside other roles the processors have other work, and the memory of threads would go unused.
        workers: config.nameserverWorkers ?? (wanted.length === 1 ? availableParallelism() : 0),
        ...(key && {
          transfers: (snapshot, surroundings) =>
            createTransfers({ snapshot, surroundings, key, secondaries, log, registry }),
        }),
      })
      await nameserver.listen()
      closers.push(() => nameserver.close())
    }
    if (hosting && servers && wanted.includes('worker')) {
      const worker = await startWorkerRole({ ...shared, ...hosting, servers })
      closers.push(() => worker.stop())
    }
    if (wanted.includes('api')) {
      const tokenDirectory = createTokenDirectory(db, notifications)
      closers.push(() => tokenDirectory.close())
      const deps: Deps = { ...shared, tokenDirectory }
      const files = config.tls && { cert: await readFile(config.tls.certFile), key: await readFile(config.tls.keyFile) }
      const tls =
        files || config.managedTlsHost ? { minVersion, handshakeTimeout: handshakeTimeoutMs, ...files } : undefined
      const app = await buildApp(deps, tls)
      if (config.managedTlsHost) {
        const certificates = await createCertificateStore({ ...shared, platformOnly: true })
        closers.push(() => certificates.close())
        keepOwnCertificate(app.server as unknown as Server, certificates, config.managedTlsHost, log)
      }
      await app.listen({ host: config.host, port: config.port })
      closers.push(() => drained(app.close(), () => app.server.closeAllConnections()))
    }
    const metrics = await serveMetrics(registry, config.host, config.metricsPort)
    closers.push(async () => void metrics.close())
    const housekeeping = setInterval(
      () => Promise.all([forgetOldKeys(db), forgetOldPushes(db)]).catch((err) => log.warn({ err }, 'housekeeping')),
      housekeepingMs,
    )
    closers.push(async () => clearInterval(housekeeping))
    return { testKey, broken: storage.broken, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/** Where builds and servers run; production does without one only by not starting. */
async function openSandbox(config: Config, log: Logger): Promise<Sandbox> {
  const mode = config.production && config.build.sandbox === 'auto' ? 'bubblewrap' : config.build.sandbox
  const sandbox = await createSandbox(mode, {
    searchPath: config.searchPath,
    ownAddresses: config.edge.addresses,
    resolvers: config.dnsResolvers,
  })
  if (sandbox.warning) log.warn({ driver: sandbox.driver }, sandbox.warning)
  return sandbox
}

/** Waits for a server to finish its requests, and cuts off those that take too long. */
async function drained(closing: Promise<unknown>, cutOff: () => void): Promise<void> {
  const timer = setTimeout(cutOff, drainMs)
  await closing
  clearTimeout(timer)
}
