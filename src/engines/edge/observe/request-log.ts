// Logs one line per request at level `debug`. The level doesn't change which code serves a request.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Logger } from 'pino'

export type RequestLog = {
  /** Logs a request that was served on the socket. */
  answered(host: string, url: string, status: number): void
  /** Logs a request once its response has been sent. */
  follow(request: IncomingMessage, response: ServerResponse): void
}

/** Leaves out the query, which may contain private input or the signature of a share link. */
export const loggedPath = (url: string | undefined) => url?.split('?', 1)[0]

export function createRequestLog(log: Logger): RequestLog {
  return {
    answered(host, url, status) {
      if (!log.isLevelEnabled('debug')) return
      log.debug({ method: 'GET', host, path: loggedPath(url), status, plain: true }, 'edge request')
    },
    follow(request, response) {
      if (!log.isLevelEnabled('debug')) return
      const startedMs = performance.now()
      response.once('close', () => {
        const { method, headers } = request
        const durationMs = Math.round((performance.now() - startedMs) * 100) / 100
        const { statusCode: status } = response
        log.debug({ method, host: headers.host, path: loggedPath(request.url), status, durationMs }, 'edge request')
      })
    },
  }
}
