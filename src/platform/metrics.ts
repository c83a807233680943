// Prometheus metrics on a separate listener, so that they are never public by mistake.
import { createServer, type Server } from 'node:http'
import type { Registry } from 'prom-client'

export async function serveMetrics(registry: Registry, host: string, port: number): Promise<Server> {
  const server = createServer(async (request, response) => {
    if (request.url !== '/metrics') return void response.writeHead(404).end('metrics are at /metrics\n')
    response.writeHead(200, { 'content-type': registry.contentType }).end(await registry.metrics())
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  return server
}
