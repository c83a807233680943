// Visitors and resolvers who ask all the while: at any edge and nameserver that answers, as browsers and resolvers do.
import { request } from 'node:http'
import { request as secureRequest } from 'node:https'
import { setTimeout as sleep } from 'node:timers/promises'
import { createAsker } from '../../bench/dns/asker.ts'

export type Visits = { asked: number; failed: number; faults: string[] }

export type VisitorOptions = {
  edgePorts: { http: number; https: number }[]
  dnsPorts: number[]
  /** Served over HTTP, by the platform's own name. */
  host: string
  /** Served over HTTPS, and with an address in the DNS. */
  domain: string
  text: string
  signal: AbortSignal
}

const pauseMs = 40
const tryMs = 3_000

export async function visit(options: VisitorOptions): Promise<Record<'HTTP' | 'HTTPS' | 'DNS', Visits>> {
  const { edgePorts, dnsPorts, host, domain, text } = options
  const askers = await Promise.all(dnsPorts.map(createAsker))
  const from = (port: number, secure: boolean) => page({ port, secure, host: secure ? domain : host, text })
  const ways = {
    HTTP: edgePorts.map(
      ({ http }) =>
        () =>
          from(http, false),
    ),
    HTTPS: edgePorts.map(
      ({ https }) =>
        () =>
          from(https, true),
    ),
    DNS: askers.map((asker) => async () => {
      const answer = await asker.ask(domain, 'A', 1_000)
      return answer?.authoritative && answer.rcode === 0 && answer.answers > 0 ? null : JSON.stringify(answer)
    }),
  }
  const visited = await Promise.all(
    Object.entries(ways).map(async ([name, ask]) => [name, await goOn(ask, options.signal)] as const),
  )
  for (const asker of askers) asker.leave()
  return Object.fromEntries(visited) as Record<keyof typeof ways, Visits>
}

/** Each question begins at another server; it failed when none of them answered rightly. */
async function goOn(servers: (() => Promise<string | null>)[], signal: AbortSignal): Promise<Visits> {
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

type Asked = { port: number; secure: boolean; host: string; text: string }

/** Null if the page came. */
function page({ port, secure, host, text }: Asked): Promise<string | null> {
  return new Promise((resolve) => {
    const options = { host: '127.0.0.1', port, path: '/', headers: { host }, agent: false as const, timeout: tryMs }
    const sent = secure ? secureRequest({ ...options, servername: host, rejectUnauthorized: false }) : request(options)
    sent.on('response', async (response) => {
      const body = await response.toArray().catch(() => null)
      if (!body) return resolve('the answer broke off')
      resolve(response.statusCode === 200 && String(body).includes(text) ? null : `status ${response.statusCode}`)
    })
    sent.on('timeout', () => sent.destroy(new Error('no answer in time')))
    sent.on('error', (error) => resolve((error as NodeJS.ErrnoException).code ?? error.message))
    sent.end()
  })
}
