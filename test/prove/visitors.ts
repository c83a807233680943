// Visitors and resolvers who ask all the while: at any edge and nameserver that answers, as browsers and resolvers do.
import { request } from 'node:http'
import { request as secureRequest } from 'node:https'
import { setTimeout as sleep } from 'node:timers/promises'
import { createDnsClient } from '../../bench/dns/client.ts'

export type Visits = { asked: number; failed: number; faults: string[] }

export type Page = { host: string; text: string; secure?: boolean }
export type Edge = { address: string; http: number; https: number }
export type Nameserver = { address: string; port: number }

export type VisitorOptions<Name extends string> = {
  edges: Edge[]
  nameservers: Nameserver[]
  /** What is asked of every edge. */
  pages: Record<Name, Page>
  /** Has an address in the DNS. */
  domain: string
  signal: AbortSignal
}

const pauseMs = 40
const tryMs = 3_000

export async function visit<Name extends string>(options: VisitorOptions<Name>): Promise<Record<Name | 'DNS', Visits>> {
  const { edges, nameservers, pages, domain, signal } = options
  const dnsClients = await Promise.all(nameservers.map(({ address, port }) => createDnsClient(port, address)))
  const ways = Object.entries<Page>(pages).map(
    ([name, page]) => [name, edges.map((edge) => () => faultOf(edge, page))] as const,
  )
  const answers = dnsClients.map((dnsClient) => async () => {
    const answer = await dnsClient.query(domain, 'A', 1_000)
    return answer?.authoritative && answer.rcode === 0 && answer.answers > 0 ? null : JSON.stringify(answer)
  })
  // A resolver asks each nameserver again before it gives up: a packet is lost with the process that had it.
  const visited = await Promise.all(
    [...ways, ['DNS', [...answers, ...answers]] as const].map(
      async ([name, ask]) => [name, await goOn(ask, signal)] as const,
    ),
  )
  for (const dnsClient of dnsClients) dnsClient.close()
  return Object.fromEntries(visited) as Record<Name | 'DNS', Visits>
}

/** Each question begins at another server; it failed when none of them answered rightly. */
async function goOn(servers: readonly (() => Promise<string | null>)[], signal: AbortSignal): Promise<Visits> {
  const visits: Visits = { asked: 0, failed: 0, faults: [] }
  for (let first = 0; !signal.aborted; first++) {
    const wrong: string[] = []
    for (let n = 0; n < servers.length; n++) {
      const fault = await servers[(first + n) % servers.length]!()
      if (fault === null) break
      wrong.push(fault)
    }
    visits.asked++
    if (wrong.length === servers.length) {
      visits.failed++
      visits.faults.push(wrong.join(', '))
    }
    await sleep(pauseMs, undefined, { signal }).catch(() => {})
  }
  return visits
}

/** Null if the page came. */
async function faultOf(edge: Edge, page: Page): Promise<string | null> {
  const { status, body } = await read(edge, page).catch((error) => ({
    status: (error as NodeJS.ErrnoException).code ?? error.message,
    body: '',
  }))
  return status === 200 && body.includes(page.text) ? null : `status ${status}`
}

/** The page as a visitor gets it who has no connection yet. */
export function read(edge: Edge, { host, secure }: Page): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const port = secure ? edge.https : edge.http
    const options = { host: edge.address, port, path: '/', headers: { host }, agent: false as const }
    const sent = secure ? secureRequest({ ...options, servername: host, rejectUnauthorized: false }) : request(options)
    // Of the whole visit: a machine that is switched off answers nothing at all.
    const late = setTimeout(() => sent.destroy(new Error('no answer in time')), tryMs)
    sent.on('response', (response) => {
      response
        .toArray()
        .then((body) => resolve({ status: response.statusCode!, body: String(Buffer.concat(body)) }), reject)
    })
    sent.on('error', reject)
    sent.on('close', () => clearTimeout(late))
    sent.end()
  })
}
