// The honest tenant, a separate process: calls API, edge and DNS at a steady pace and reports the response times.
import { Agent, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { answerParent } from '../children.ts'
import { createDnsClient } from '../dns/client.ts'

export type Honest = {
  apiPort: number
  token: string
  edgePort: number
  edgeHost: string
  dnsPort: number
  dnsName: string
  seconds: number
  perSecond: number
}

/** Response times in milliseconds, by kind of request. */
export type Latencies = Record<string, number[]>

// Only for one measurement: the server may close an idle connection at any time.
let agent: Agent

type Call = { port: number; method?: string; path: string; headers: Record<string, string>; body?: string }

function ask({ port, method = 'GET', path, headers, body }: Call): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, method, path, headers, agent }, (response) => {
      response.resume()
      response.on('end', () => resolve(response.statusCode!))
      response.on('error', reject)
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

async function measure(honest: Honest): Promise<Latencies> {
  const { apiPort, token, edgePort, edgeHost, dnsPort, dnsName, seconds, perSecond } = honest
  agent = new Agent({ keepAlive: true, maxSockets: 64 })
  const dnsClient = await createDnsClient(dnsPort)
  const headers = { authorization: `Bearer ${token}` }
  const expect = async (status: number, sent: Call) => {
    const got = await ask(sent)
    if (got !== status) throw new Error(`${sent.method ?? 'GET'} ${sent.path} answered ${got}`)
  }
  const body = JSON.stringify({ subject: 'a question', message: 'an answer?' })
  const checks: Record<string, () => Promise<unknown>> = {
    'GET /projects': () => expect(200, { port: apiPort, path: '/api/projects', headers }),
    'POST /tickets': () =>
      expect(201, {
        port: apiPort,
        method: 'POST',
        path: '/api/tickets',
        headers: { ...headers, 'content-type': 'application/json', 'content-length': String(body.length) },
        body,
      }),
    'edge page': () => expect(200, { port: edgePort, path: '/', headers: { host: edgeHost } }),
    'DNS A': async () => {
      const answer = await dnsClient.query(dnsName, 'A', 10_000)
      if (answer?.answers !== 1) throw new Error(`${dnsName} A answered ${JSON.stringify(answer)}`)
    },
  }
  const latencies: Latencies = {}
  const lanes = Object.entries(checks).map(async ([name, once], lane) => {
    const taken: number[] = []
    latencies[name] = taken
    const startMs = performance.now() + lane
    const open: Promise<void>[] = []
    for (let number = 0; number < seconds * perSecond; number++) {
      // Each request has a scheduled time, whether or not the previous one has a response.
      const dueMs = startMs + (number * 1000) / perSecond
      const waitMs = dueMs - performance.now()
      if (waitMs > 0) await sleep(waitMs)
      const sentMs = performance.now()
      open.push(once().then(() => void taken.push(performance.now() - sentMs)))
    }
    await Promise.all(open)
  })
  try {
    await Promise.all(lanes)
  } finally {
    dnsClient.close()
    agent.destroy()
  }
  return latencies
}

answerParent(measure, async () => {})
