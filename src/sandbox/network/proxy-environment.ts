// Environment variables that make programs in a sandbox use the proxy: all programs, or only npm and git.
import { promises as dns } from 'node:dns'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { Network } from '../processes/command.ts'
import { PROXY_PORT } from '../processes/forwarder.ts'
import { type Boundary, leadsInward, readList, type Target } from './addresses.ts'

const PROXY = `http://127.0.0.1:${PROXY_PORT}`
const CERTIFICATES = ['/etc/ssl/certs/ca-certificates.crt', '/etc/pki/tls/certs/ca-bundle.crt']
// For npm and pnpm up to version 10, for yarn, and for later versions of pnpm.
const managerNames = [
  ...['npm_config_proxy', 'npm_config_https_proxy', 'YARN_HTTP_PROXY', 'YARN_HTTPS_PROXY'],
  ...['pnpm_config_proxy', 'pnpm_config_https_proxy'],
]
// A name server that is down must not delay every run. The command will see the error itself.
const LOOKUP_MS = 2000

/** Node only trusts its bundled CAs, but a registry mirror may use a CA that only the host trusts. */
export function certificateEnvironment(): Record<string, string> {
  const bundle = CERTIFICATES.find((path) => existsSync(path))
  return bundle === undefined ? {} : { NODE_EXTRA_CA_CERTS: bundle }
}

/** The environment if the proxy is the only network access. */
export function proxyForAll(network: Network): Record<string, string> {
  const names = ['HTTP_PROXY', 'HTTPS_PROXY', 'http_proxy', 'https_proxy', ...managerNames]
  // A build must reach servers that it starts for its own tests without the proxy.
  const direct = readList(network.private).some(({ host }) => isLocal(host)) ? '' : 'localhost,127.0.0.1,::1'
  return {
    ...Object.fromEntries(names.map((name) => [name, PROXY])),
    NO_PROXY: direct,
    no_proxy: direct,
    npm_config_noproxy: direct,
    ...(network.reach === 'public' ? { NODE_USE_ENV_PROXY: '1' } : {}),
  }
}

const isLocal = (host: string) => host === 'localhost' || (isIP(host) !== 0 && leadsInward(host))

/**
 * The environment if only these hosts need the proxy. HTTP_PROXY isn't set, so Node doesn't need NODE_USE_ENV_PROXY.
 * npm uses one proxy for everything, git only for these hosts.
 */
export function proxyForHosts(hosts: Target[], given: Record<string, string>): Record<string, string> {
  if (hosts.length === 0) return {}
  const environment: Record<string, string> = {
    ...Object.fromEntries(managerNames.map((name) => [name, PROXY])),
    npm_config_noproxy: '',
  }
  let count = Number.parseInt(given.GIT_CONFIG_COUNT ?? '0', 10) || 0
  for (const { host, port } of hosts) {
    for (const scheme of ['http', 'https']) {
      environment[`GIT_CONFIG_KEY_${count}`] =
        `http.${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}.proxy`
      environment[`GIT_CONFIG_VALUE_${count}`] = PROXY
      count++
    }
  }
  return { ...environment, GIT_CONFIG_COUNT: String(count) }
}

/** Listed hosts that a namespace can't reach: with a private address, or listed in this machine's /etc/hosts. */
export async function hostsBehindProxy(network: Network, { crosses }: Boundary): Promise<Target[]> {
  const targets = readList(network.private)
  if (targets.length === 0) return []
  const file = await readFile('/etc/hosts', 'utf8').catch(() => '')
  const filed = new Set(file.split('\n').flatMap((line) => line.replace(/#.*/, '').toLowerCase().split(/\s+/).slice(1)))
  const behind = new Map<string, Promise<boolean>>()
  for (const { host } of targets) {
    if (!behind.has(host)) behind.set(host, filed.has(host) ? Promise.resolve(true) : isUnreachable(host, crosses))
  }
  const answers = await Promise.all(targets.map(({ host }) => behind.get(host)))
  return targets.filter((_target, index) => answers[index])
}

/** Whether a host needs the proxy, because a namespace only reaches public IPv4 addresses. */
async function isUnreachable(host: string, crosses: (address: string) => boolean): Promise<boolean> {
  const found = dns.lookup(host, { all: true }).catch(() => [])
  const late = new AbortController()
  const addresses = await Promise.race([found, delay(LOOKUP_MS, [], { signal: late.signal }).catch(() => [])])
  late.abort()
  if (addresses.some(({ address }) => crosses(address))) return true
  return addresses.length > 0 && addresses.every(({ family }) => family !== 4)
}
