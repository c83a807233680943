// Opens the network of a run: a namespace with a resolver, the proxy, or both.
import { chmod, chown } from 'node:fs/promises'
import { join } from 'node:path'
import type { Network } from '../processes/command.ts'
import type { ControlGroup } from '../processes/control-groups.ts'
import { type Boundary, readBoundary } from './addresses.ts'
import { openEgress } from './egress.ts'
import { type Namespace, type NamespaceTools, openNamespace } from './namespace.ts'
import { hostsBehindProxy, proxyForAll, proxyForHosts } from './proxy-environment.ts'
import { lookupPublic, openResolver } from './resolver.ts'
import { readServers } from './upstream.ts'

export type NetworkHost = {
  /** Null if namespaces don't work on this machine. */
  namespaces: NamespaceTools | null
  /** Host users of sandboxed commands and of their network helpers; null: Berth's own user. */
  user: { uid: number; gid: number } | null
  helper: { uid: number; gid: number } | null
  ownAddresses: readonly string[]
  resolvers: readonly string[]
  inherited: number[]
}

export type OpenNetwork = {
  /** Null without our own namespace: bubblewrap then creates one without a route. */
  enter: string[] | null
  /** Nothing untrusted may run before this resolves, or if it rejects. */
  connected: Promise<void>
  /** Resolves if the network breaks later. */
  lost: Promise<void>
  /** Variables to add to those of the command. */
  environment(given: Record<string, string>): Record<string, string>
  /** Host sockets for the forwarder. */
  proxySocket: string | null
  resolverSocket: string | null
}

export type NetworkRun = {
  opened: Promise<OpenNetwork>
  /** Closes everything; resolves when no process is left. */
  close(): Promise<void>
}

type Run = { directory: string; grouping: Promise<ControlGroup | undefined>; signal: AbortSignal }
type Closer = () => Promise<unknown>

/** Starts immediately, while the run prepares mounts and limits. */
export function startNetwork(host: NetworkHost, network: Network, run: Run): NetworkRun {
  const closers: Closer[] = []
  const opened = open(host, network, run, closers)
  opened.catch(() => {})
  return {
    opened,
    async close() {
      await opened.catch(() => {})
      await Promise.all(closers.map((close) => close()))
    },
  }
}

async function open(host: NetworkHost, network: Network, run: Run, closers: Closer[]): Promise<OpenNetwork> {
  const boundary = readBoundary(host.ownAddresses)
  const servers = readServers(host.resolvers)
  const socket = async (name: string, listen: (path: string) => Promise<{ close: Closer }>) => {
    const path = join(run.directory, name)
    const { close } = await listen(path)
    closers.push(close)
    await chmod(path, 0o600)
    if (host.user) await chown(path, host.user.uid, host.user.gid)
    return path
  }
  const openProxy = () =>
    socket('egress.sock', (path) =>
      openEgress(path, network, boundary, (name) => lookupPublic(name, servers, boundary)),
    )

  if (network.reach === 'registry' || host.namespaces === null) {
    const proxySocket = await openProxy()
    const environment = () => proxyForAll(network)
    const lost = new Promise<void>(() => {})
    return { enter: null, connected: Promise.resolve(), lost, environment, proxySocket, resolverSocket: null }
  }
  const [namespace, resolverSocket, proxy] = await all(
    makeNamespace(host, host.namespaces, boundary, run).then((made) => {
      closers.push(made.close)
      return made
    }),
    socket('resolver.sock', (path) => openResolver(path, servers, boundary)),
    hostsBehindProxy(network, boundary).then(async (hosts) =>
      hosts.length > 0 ? { hosts, path: await openProxy() } : { hosts, path: null },
    ),
  )
  return {
    enter: namespace.enter,
    connected: namespace.connected,
    lost: namespace.lost,
    environment: (given) => proxyForHosts(proxy.hosts, given),
    proxySocket: proxy.path,
    resolverSocket,
  }
}

function makeNamespace(host: NetworkHost, tools: NamespaceTools, boundary: Boundary, run: Run): Promise<Namespace> {
  const { helper: user, inherited } = host
  const entrances = run.grouping.then((group) => group?.entrances ?? [])
  return openNamespace({ tools, user, own: boundary.own, inherited, entrances, signal: run.signal })
}

/** Like Promise.all, but only rejects after all have settled, so that nothing opens after `close`. */
async function all<T extends unknown[]>(...promises: { [K in keyof T]: Promise<T[K]> }): Promise<T> {
  await Promise.allSettled(promises)
  return Promise.all(promises) as Promise<T>
}
