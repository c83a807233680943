// What a run needs to reach what it may: a namespace with a resolver, the proxy, or both.
import { chmod, chown } from 'node:fs/promises'
import { join } from 'node:path'
import { type Boundary, readBoundary } from './addresses.ts'
import type { Network } from './command.ts'
import type { ControlGroup } from './control-groups.ts'
import { openEgress } from './egress.ts'
import { type Namespace, type NamespaceTools, openNamespace } from './namespace.ts'
import { hostsBehindProxy, proxyForAll, proxyForHosts } from './proxy-environment.ts'
import { lookupPublic, openResolver } from './resolver.ts'
import { readServers } from './upstream.ts'

export type NetworkHost = {
  /** Null where such a namespace cannot be made. */
  namespaces: NamespaceTools | null
  /** Whom sandboxed commands are on the host, and whom what serves them is; null: whoever Berth is. */
  user: { uid: number; gid: number } | null
  helper: { uid: number; gid: number } | null
  ownAddresses: readonly string[]
  resolvers: readonly string[]
  inherited: number[]
}

export type OpenNetwork = {
  /** Null without a namespace: then bubblewrap makes one with no way out. */
  enter: string[] | null
  /** Before it settles, nothing untrusted may run; when it rejects, never. */
  connected: Promise<void>
  /** Resolves if it breaks later on. */
  lost: Promise<void>
  /** Adds what programs must know, given what the command has already. */
  environment(given: Record<string, string>): Record<string, string>
  /** Sockets of the host, for the forwarder. */
  proxySocket: string | null
  resolverSocket: string | null
}

export type NetworkRun = {
  opened: Promise<OpenNetwork>
  /** Ends whatever was opened so far; resolves when no process of it is left. */
  close(): Promise<void>
}

type Run = { directory: string; grouping: Promise<ControlGroup | undefined>; signal: AbortSignal }
type Closer = () => Promise<unknown>

/** Begins at once; a run has mounts and limits to prepare meanwhile. */
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

/** Like Promise.all, but when it rejects, nothing is under way any more that would be opened after the closing. */
async function all<T extends unknown[]>(...promises: { [K in keyof T]: Promise<T[K]> }): Promise<T> {
  await Promise.allSettled(promises)
  return Promise.all(promises) as Promise<T>
}
