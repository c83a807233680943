// The work of each role: what grows with the number of sites and their visitors.
import { Agent, type ClientRequest, type IncomingMessage, type RequestOptions, request } from 'node:http'
import { Agent as SecureAgent, request as secureRequest } from 'node:https'
import { createDnsClient } from '../dns/client.ts'
import type { Installation, Role } from './installation.ts'

export type Kind = {
  role: Role
  name: (typeof kindNames)[number]
  atOnce: number
  /** The warm-up repetitions, because code is compiled while it runs. */
  warmUp: number
  once(): Promise<unknown>
}

export const kindNames = [
  'api: `GET /projects/{project}`',
  'api: `GET /deployments`',
  'api: `POST /tickets`',
  'edge: an 8 KB page over HTTP',
  'edge: an 8 KB page over HTTPS',
  'edge: the same, each on a new connection',
  'nameserver: an answer over UDP',
  'worker: a deployment of a static site of 220 files',
] as const

// 8 KB of the site that `makeSite` creates.
const page = '/page-99'

/** Throws for an error response or no response. */
function send(clientRequest: ClientRequest, body?: string): Promise<void> {
  return new Promise((resolve, reject) => {
    clientRequest.on('response', (response: IncomingMessage) => {
      const { statusCode = 0 } = response
      response.resume().on('error', reject)
      response.on('end', () => {
        if (statusCode >= 200 && statusCode < 300) resolve()
        else reject(new Error(`${clientRequest.method} ${clientRequest.path}: ${statusCode}`))
      })
    })
    clientRequest.on('error', reject).end(body)
  })
}

export async function kindsOf(installation: Installation): Promise<{ kinds: Kind[]; close(): void }> {
  const { ports, call, token, project, domain, host } = installation
  const agent = new Agent({ keepAlive: true })
  const secure = new SecureAgent({ keepAlive: true })
  const dnsClient = await createDnsClient(ports.dns)
  const local = { host: '127.0.0.1' }
  const api = (method: string, path: string, body?: object) => {
    const text = body && JSON.stringify(body)
    const headers = { authorization: `Bearer ${token}`, ...(text && { 'content-type': 'application/json' }) }
    return send(request({ ...local, port: ports.api, method, path: `/api${path}`, agent, headers }), text)
  }
  const visit = (options: RequestOptions) =>
    send(
      secureRequest({
        ...local,
        port: ports.https,
        path: page,
        headers: { host: domain },
        servername: domain,
        rejectUnauthorized: false,
        ...options,
      }),
    )
  const deploy = async () => {
    const { id } = await call<{ id: string }>('POST', '/deployments', { project })
    for (let state = 'BUILDING'; state !== 'READY'; ) {
      state = (await call<{ state: string }>('GET', `/deployments/${id}?wait=10`)).state
      if (state === 'ERROR') throw new Error(`the deployment ${id} failed`)
    }
  }
  const query = async () => {
    const answer =
      (await dnsClient.query(`www.${domain}`, 'A')) ?? (await dnsClient.query(`www.${domain}`, 'A', 10_000))
    if (answer?.answers !== 1) throw new Error(`the nameserver answered ${JSON.stringify(answer)}`)
  }
  const ticket = { subject: 'Bench', message: 'How much is a second?' }
  return {
    kinds: [
      {
        role: 'api',
        name: 'api: `GET /projects/{project}`',
        atOnce: 16,
        warmUp: 4000,
        once: () => api('GET', `/projects/${project}`),
      },
      {
        role: 'api',
        name: 'api: `GET /deployments`',
        atOnce: 16,
        warmUp: 4000,
        once: () => api('GET', '/deployments'),
      },
      {
        role: 'api',
        name: 'api: `POST /tickets`',
        atOnce: 16,
        warmUp: 4000,
        once: () => api('POST', '/tickets', ticket),
      },
      {
        role: 'edge',
        name: 'edge: an 8 KB page over HTTP',
        atOnce: 64,
        warmUp: 20000,
        once: () => send(request({ ...local, port: ports.http, path: page, headers: { host }, agent })),
      },
      {
        role: 'edge',
        name: 'edge: an 8 KB page over HTTPS',
        atOnce: 64,
        warmUp: 20000,
        once: () => visit({ agent: secure }),
      },
      {
        role: 'edge',
        name: 'edge: the same, each on a new connection',
        atOnce: 16,
        warmUp: 2000,
        once: () => visit({ agent: false }),
      },
      { role: 'nameserver', name: 'nameserver: an answer over UDP', atOnce: 128, warmUp: 50000, once: query },
      {
        role: 'worker',
        name: 'worker: a deployment of a static site of 220 files',
        atOnce: 2,
        warmUp: 4,
        once: deploy,
      },
    ],
    close() {
      dnsClient.close()
      agent.destroy()
      secure.destroy()
    },
  }
}
