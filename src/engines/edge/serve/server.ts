// Sets up the edge: its tables and caches, and its ports for HTTP and HTTPS.
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import type { Config } from '../../../config.ts'
import type { Artifacts } from '../../../platform/artifacts/artifacts.ts'
import { type ConnectionShares, createConnectionShares } from '../../../platform/database/connection-shares.ts'
import type { Database } from '../../../platform/database/database.ts'
import type { Notifications } from '../../../platform/database/notifications.ts'
import type { Snapshots } from '../../../platform/database/snapshots.ts'
import { ownNames } from '../../../platform/http/own-names.ts'
import { CountedRequest, limitRequestCosts } from '../../../platform/http/request-intake.ts'
import { createSelfRequest } from '../../../platform/http/self-request.ts'
import { type DrainSignal, refuseOnceReplaced } from '../../../platform/observe/draining.ts'
import type { Vault } from '../../../platform/secrets/secrets.ts'
import { type Rollups, startTrafficRollups } from '../../../services/traffic/index.ts'
import type { TicketKeys } from '../../../tls/tickets.ts'
import { createBodies } from '../answer/bodies.ts'
import { createResponder } from '../answer/respond.ts'
import { Http1Response } from '../answer/responses.ts'
import { answerPlainRequests } from '../bare/plain-connections.ts'
import { createPlainResponder } from '../bare/plain-responder.ts'
import { createPreviews } from '../guards/previews.ts'
import { createRefreshWait } from '../hosts/refresh-wait.ts'
import type { ServerProjects } from '../hosts/server-projects.ts'
import { createSites } from '../hosts/sites.ts'
import { createSnapshot, type Snapshot } from '../hosts/snapshot.ts'
import { createTakeovers } from '../hosts/takeovers.ts'
import type { HostEntry } from '../hosts/targets.ts'
import { createTraffic } from '../hosts/traffic.ts'
import { createEdgeMetrics, type EdgeMetrics } from '../observe/metrics.ts'
import { createRequestLog } from '../observe/request-log.ts'
import { type Encryption, openEncryption, strictTransportLine } from './encryption.ts'
import { createHandler } from './handler.ts'
import { isUpgrade } from './upgrades.ts'

export type EdgeOptions = {
  config: Pick<Config, 'host' | 'edge' | 'production' | 'baseUrl' | 'nameservers'>
  db: Database
  notifications: Notifications
  artifacts: Artifacts
  log: Logger
  /** Called when a project's production shows a deployment that the platform waits for. */
  onShown?(projectId: string, deploymentId: string): void
  /** Default: its own registry. */
  registry?: Registry
  servers?: ServerProjects
  /** Decrypts the certificates' private keys; without it, the edge serves no HTTPS. */
  vault?: Vault
  /** Keys of TLS sessions, shared with other servers. Default: its own keys. */
  tickets?: TicketKeys
  /** Stores hosts and certificates for starts without the database. */
  snapshots?: Snapshots | undefined
  /** Aborted while the process drains. */
  draining?: DrainSignal
  /** Shared by all connections of the process. Default: its own shares. */
  connectionShares?: ConnectionShares
}

export type Edge = {
  /** Loads hosts and certificates, then opens the ports. */
  listen(): Promise<{ port: number; httpsPort: number | null }>
  /** Null until `listen`. */
  readonly snapshot: Snapshot | null
  metrics: EdgeMetrics
  /** Whether both ports respond; sends requests to itself until they do. */
  answers(): Promise<boolean>
  /** Writes the traffic counts now instead of at the end of the minute. */
  flushTraffic(): Promise<void>
  close(): Promise<void>
}

// Headers fit into one or two packets. Slower clients just hold connections open.
const headersTimeoutMs = 15_000
const keepAliveTimeoutMs = 30_000
// How long responses may take to complete when the edge shuts down.
const drainMs = 10_000

export function createEdge(options: EdgeOptions): Edge {
  const { config, db, notifications, artifacts, log, servers, vault, draining } = options
  const state: { snapshot: Snapshot | null; encryption: Encryption | null } = { snapshot: null, encryption: null }
  const metrics = createEdgeMetrics(options.registry, {
    hosts: () => state.snapshot?.size ?? 0,
    certificates: () => state.encryption?.certificates.size ?? 0,
  })
  const takeovers = createTakeovers(servers, options.onShown ?? (() => {}), log)
  const sites = createSites(artifacts, log)
  const bodies = createBodies(artifacts)
  const respond = createResponder(bodies, metrics, log)
  const requests = createRequestLog(log)
  const waitForRefresh = createRefreshWait(() => state.snapshot)
  const traffic = createTraffic()
  let rollups: Rollups | null = null
  const { handle, upgrade, endBarred } = createHandler({
    state,
    sites,
    respond,
    metrics,
    servers,
    waitForRefresh,
    previews: createPreviews({ vault, respond, count: metrics.count }),
    requests,
    traffic,
    plainOrigin,
    draining,
    log,
  })

  function plainOrigin(host: string): string {
    const { port } = server.address() as AddressInfo
    // In production visitors use port 80, whatever is in between.
    return `http://${host}${config.production || port === 80 ? '' : `:${port}`}`
  }

  const http1 = {
    headersTimeout: headersTimeoutMs,
    keepAliveTimeout: keepAliveTimeoutMs,
    shouldUpgradeCallback: isUpgrade,
    // Node's types only allow its own class.
    ServerResponse: Http1Response as unknown as typeof ServerResponse,
    IncomingMessage: CountedRequest,
  }
  const server = createServer(http1, handle as never)
  server.on('upgrade', upgrade)
  refuseOnceReplaced(server, draining)

  // Plain requests are served on the socket with the same results as `handle`. All others go to `handle`.
  const timeouts = { firstTimeoutMs: headersTimeoutMs, nextTimeoutMs: keepAliveTimeoutMs }
  const answers = { sites, bodies, metrics, requests, traffic, keepAliveSeconds: keepAliveTimeoutMs / 1000 }
  function findPlain(host: string, url: string): HostEntry | null {
    // Node's server sends `Connection: close` and closes.
    if (draining?.aborted) return null
    if (state.encryption?.challengeAt(url) !== undefined) return null
    return state.snapshot?.findEntry(host) ?? null
  }
  limitRequestCosts(server, 'connection')
  const plain = answerPlainRequests(server, 'connection', {
    ...timeouts,
    answer: createPlainResponder({
      ...answers,
      find: (host, url) => (state.encryption?.locationOf(host, url) ? null : findPlain(host, url)),
      linesOf: () => '',
    }),
  })
  const plainAnswers = createSelfRequest(server)
  const { connectionShares: shares = createConnectionShares() } = options
  shares.guard(server)
  const encryptedPlain = {
    ...timeouts,
    answer: createPlainResponder({
      ...answers,
      find: (host, url, socket) =>
        state.encryption?.isMisdirected(socket as TLSSocket, host) === false ? findPlain(host, url) : null,
      linesOf: (found, host) => (state.encryption?.isStrict(found, host) ? strictTransportLine : ''),
    }),
  }

  async function open(): Promise<{ port: number; httpsPort: number | null }> {
    const { hosts: ownHosts } = ownNames(config)
    const edgeDomain = config.edge.domain
    const onBarred = endBarred
    const { snapshots } = options
    const context = { db, notifications, snapshots, log }
    rollups = startTrafficRollups({ db, tallies: traffic, log })
    state.snapshot = await createSnapshot({ ...context, edgeDomain, ownHosts, takeovers, onBarred })
    if (vault) {
      state.encryption = await openEncryption({
        ...options,
        ownHosts,
        vault,
        http1,
        shares,
        plain: encryptedPlain,
        handle,
        upgrade,
      })
    }
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(config.edge.httpPort, config.host, resolve)
    })
    return { port: (server.address() as AddressInfo).port, httpsPort: state.encryption?.port ?? null }
  }

  async function close(): Promise<void> {
    await closePorts()
    // Last, because requests are counted when they end.
    await rollups?.close()
  }

  async function closePorts(): Promise<void> {
    takeovers.close()
    await state.snapshot?.close()
    // In parallel: open WebSockets would keep `server` from closing, and requests in flight need their servers.
    const others = Promise.all([servers?.close(), state.encryption?.close(drainMs)])
    if (!server.listening) return void (await others)
    const closed = new Promise<void>((resolve) => server.close(() => resolve()))
    plain.close()
    const timer = setTimeout(() => server.closeAllConnections(), drainMs)
    await Promise.all([closed, others])
    clearTimeout(timer)
  }

  return {
    metrics,
    answers: async () => (await plainAnswers()) && (state.encryption === null || (await state.encryption.answers())),
    get snapshot() {
      return state.snapshot
    },
    async listen() {
      try {
        return await open()
      } catch (error) {
        // If one port is taken, the other must not stay open.
        await close()
        throw error
      }
    },
    async flushTraffic() {
      await rollups?.flush()
    },
    close,
  }
}
