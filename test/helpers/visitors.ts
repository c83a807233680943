// Visitors that send requests without pause over kept connections, and record every failed request.
import { Agent as HttpAgent, type IncomingMessage, request as requestHttp } from 'node:http'
import { type ClientHttp2Session, connect as connectHttp2, constants } from 'node:http2'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'
import { setTimeout as sleep } from 'node:timers/promises'

export type Visitors = {
  /** The number of correct responses by kind. */
  answered: Record<string, number>
  failures: string[]
  /** Resolves after the last response. */
  stop(): Promise<void>
}

/** Resolves with the status. */
export type Ask = () => Promise<number>

// As many as a small site has, because the test machine has other work.
const pauseMs = 10

export function startVisitors(kinds: Record<string, { ask: Ask; status: number }>): Visitors {
  const answered: Record<string, number> = {}
  const failures: string[] = []
  let stopped = false
  async function visit(kind: string, ask: Ask, wanted: number): Promise<void> {
    while (!stopped) {
      await ask().then(
        (status) => {
          if (status === wanted) answered[kind]!++
          else failures.push(`${kind}: ${status}`)
        },
        (error) => failures.push(`${kind}: ${error}`),
      )
      await sleep(pauseMs)
    }
  }
  const visits = Object.entries(kinds).flatMap(([kind, { ask, status }]) => {
    answered[kind] = 0
    return [visit(kind, ask, status), visit(kind, ask, status)]
  })
  return {
    answered,
    failures,
    async stop() {
      stopped = true
      await Promise.all(visits)
    },
  }
}

type Request = { path: string; headers: Record<string, string>; method?: string; body?: string }

/** Over keep-alive connections, reused as long as the server allows. */
export function keptHttp(port: number, { path, headers, method = 'GET', body }: Request, ca?: string): Ask {
  const agent = ca ? new HttpsAgent({ keepAlive: true, ca }) : new HttpAgent({ keepAlive: true })
  const servername = ca ? { servername: headers.host } : {}
  return () =>
    new Promise((resolve, reject) => {
      const options = { host: '127.0.0.1', port, agent, path, method, headers, ...servername }
      const answer = (response: IncomingMessage) => {
        response.on('end', () => resolve(response.statusCode!)).on('error', reject)
        response.resume()
      }
      const sent = ca ? requestHttps(options, answer) : requestHttp(options, answer)
      sent.on('error', reject).end(body)
    })
}

/** Over one HTTP/2 session at a time. */
export function keptHttp2(port: number, host: string, ca: string): Ask {
  let session: ClientHttp2Session | null = null
  const open = () =>
    connectHttp2(`https://${host}:${port}`, {
      ca,
      lookup: (_host, _options, callback) => callback(null, [{ address: '127.0.0.1', family: 4 }] as never, 4),
      // An error between requests fails none of them.
    }).on('error', () => {})
  /** Null if the server refused it unprocessed, so that it must be resent (RFC 9113, section 8.7). */
  function once(on: ClientHttp2Session): Promise<number | null> {
    return new Promise((resolve, reject) => {
      on.once('error', reject)
      const stream = on.request({ ':path': '/', ':authority': host })
      let status: number | null = null
      stream.on('response', (headers) => {
        status = Number(headers[':status'])
      })
      stream.on('error', (error) => {
        if (stream.rstCode === constants.NGHTTP2_REFUSED_STREAM) resolve(null)
        else reject(error)
      })
      stream.on('close', () => {
        on.off('error', reject)
        if (stream.rstCode === constants.NGHTTP2_REFUSED_STREAM) resolve(null)
        else resolve(status ?? 0)
      })
      stream.resume()
    })
  }
  return async () => {
    for (;;) {
      if (!session || session.closed || session.destroyed) session = open()
      const status = await once(session)
      if (status !== null) return status
    }
  }
}
