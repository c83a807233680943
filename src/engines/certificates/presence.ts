// Waits until challenges are visible, because a premature validation counts as a failure.
import { Resolver } from 'node:dns/promises'
import { request } from 'node:http'
import { isIPv6 } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Config } from '../../config.ts'
import { type ListenAddress, listenAddress, reachableAddress } from '../../dns/listen-address.ts'
import type { Challenge } from '../../services/certificates/index.ts'

/** The `address:port` of every nameserver and edge. */
export type ChallengeServers = { nameservers: string[]; edges: string[] }

// Secondaries transfer a changed zone within moments of a NOTIFY.
const dnsTimeoutMs = 10_000
// Edges learn of challenges by notification. One that is unreachable from here must not delay the order for long.
const httpTimeoutMs = 3_000
const queryTimeoutMs = 1_000

function joined({ host, port }: ListenAddress): string {
  return isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`
}

function reachable(addresses: ListenAddress[]): ListenAddress[] {
  return addresses.map(reachableAddress).filter((address) => address !== null)
}

export function challengeServersOf(config: Config): ChallengeServers {
  const nameservers = [...config.nameserverListen, ...config.nameserverSecondaries].map(listenAddress)
  return {
    nameservers: reachable(nameservers).map(joined),
    edges: reachable(config.edge.addresses.map((host) => ({ host, port: config.edge.httpPort }))).map(joined),
  }
}

async function showsText(server: string, { name, value }: Challenge): Promise<boolean> {
  const resolver = new Resolver({ timeout: queryTimeoutMs, tries: 1 })
  resolver.setServers([server])
  const texts = await resolver.resolveTxt(`_acme-challenge.${name}`).catch(() => [])
  return texts.some((parts) => parts.join('') === value)
}

function servesToken(edge: string, { name, token, value }: Challenge): Promise<boolean> {
  return new Promise((resolve) => {
    const url = `http://${edge}/.well-known/acme-challenge/${token}`
    const sent = request(url, { headers: { host: name }, timeout: queryTimeoutMs }, (response) => {
      let text = ''
      response.setEncoding('latin1')
      response.on('data', (chunk: string) => {
        text += chunk
        if (text.length > value.length + 16) sent.destroy()
      })
      response.on('error', () => resolve(false))
      response.on('end', () => resolve(text.trim() === value))
    })
    sent.on('timeout', () => sent.destroy())
    sent.on('error', () => resolve(false))
    sent.on('close', () => resolve(false))
    sent.end()
  })
}

async function until(check: () => Promise<boolean>, timeoutMs: number, signal: AbortSignal): Promise<boolean> {
  const endMs = performance.now() + timeoutMs
  for (let pauseMs = 20; ; pauseMs = Math.min(pauseMs * 2, 500)) {
    if (await check()) return true
    signal.throwIfAborted()
    if (performance.now() + pauseMs > endMs) return false
    await sleep(pauseMs, undefined, { signal })
  }
}

/** Returns the servers that didn't show a challenge in time. They may only be unreachable from here, so orders continue. */
export async function awaitPresence(
  servers: ChallengeServers,
  challenges: Challenge[],
  signal: AbortSignal,
): Promise<string[]> {
  const checks = challenges.flatMap((challenge) =>
    challenge.type === 'dns-01'
      ? servers.nameservers.map((server) => ({
          server,
          timeoutMs: dnsTimeoutMs,
          check: () => showsText(server, challenge),
        }))
      : servers.edges.map((server) => ({
          server,
          timeoutMs: httpTimeoutMs,
          check: () => servesToken(server, challenge),
        })),
  )
  const seen = await Promise.all(checks.map(({ check, timeoutMs }) => until(check, timeoutMs, signal)))
  return [...new Set(checks.filter((_, index) => !seen[index]).map(({ server }) => server))]
}
