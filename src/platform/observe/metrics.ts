// Serves the metrics and health of every role on a separate listener, so that they are never public by mistake.
import { createServer, type Server } from 'node:http'
import type { Registry } from 'prom-client'
import type { Health } from './health.ts'

export type Monitored = { registry: Pick<Registry, 'contentType' | 'metrics'>; health: Pick<Health, 'check'> }

/** The content of `monitored` may be replaced later. */
export async function serveMetrics(monitored: Monitored, host: string, port: number): Promise<Server> {
  const answers: Record<string, (query: URLSearchParams) => Promise<{ status: number; type: string; text: string }>> = {
    '/metrics': async () => {
      const { registry } = monitored
      return { status: 200, type: registry.contentType, text: await registry.metrics() }
    },
    '/healthz': async () => asJson(200, { status: 'ok' }),
    '/readyz': async (query) => {
      const report = await monitored.health.check(query.get('role') ?? undefined)
      return asJson(report.status === 'unavailable' ? 503 : 200, report)
    },
  }
  const server = createServer(async (request, response) => {
    const [path = '', query] = (request.url ?? '').split('?', 2)
    const answer = Object.hasOwn(answers, path) ? answers[path] : undefined
    if (!answer) return void response.writeHead(404).end('There are /metrics, /healthz and /readyz here.\n')
    const { status, type, text } = await answer(new URLSearchParams(query)).catch((error) =>
      asJson(500, { status: String(error) }),
    )
    // A client that keeps sending requests would keep the process from exiting.
    if (!server.listening) response.shouldKeepAlive = false
    response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' }).end(text)
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  return server
}

function asJson(status: number, body: object) {
  return { status, type: 'application/json; charset=utf-8', text: `${JSON.stringify(body)}\n` }
}
