// Logs one line per request at level `debug`. The level does not change which code answers a request.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Logger } from 'pino'

export type RequestLog = {
  /** Logs a request that was answered on the socket itself. */
  answered(host: string, url: string, status: number): void
  /** Logs a request when its response is sent. */
  follow(request: IncomingMessage, response: ServerResponse): void
}

/** Without the query, which may hold anything a visitor typed, or a link that opens a preview. */
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
