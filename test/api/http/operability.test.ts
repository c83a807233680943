import { createServer, type Server, type Socket } from 'node:net'
import { Writable } from 'node:stream'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { buildApp } from '../../../src/api/app.ts'
import { startApi } from '../../helpers/api.ts'
import { createDatabase } from '../../helpers/database.ts'
import { until } from '../../helpers/until.ts'

test('every request leaves one JSON line with id, route, status, duration and token id, and never a secret', async () => {
  const lines: string[] = []
  const sink = new Writable({
    write(chunk, _encoding, done) {
      lines.push(String(chunk))
      done()
    },
  })
  const api = await startApi()
  const app = await buildApp({ ...api.deps, log: pino({ level: 'trace' }, sink) })
  const send = (method: 'GET' | 'POST', url: string, payload?: object) =>
    app.inject({ method, url, payload, headers: { authorization: `Bearer ${api.token}` } })
  await send('GET', '/api/projects?search=hush')
  const made = (await send('POST', '/api/tokens', { name: 'x' })).json()
  await send('POST', '/api/projects', { name: 'bad name', repo: 'x' })
  await app.inject({ url: '/api/projects', headers: { authorization: 'Bearer brt_wrong' } })
  const text = lines.join('')
  for (const secret of [api.token, made.token, 'brt_wrong', 'hush']) expect(text).not.toContain(secret)
  const requests = lines.map((line) => JSON.parse(line)).filter((line) => line.msg === 'request')
  expect(requests).toHaveLength(4)
  expect(requests[0]).toMatchObject({ method: 'GET', route: '/api/projects', path: '/api/projects', status: 200 })
  expect(requests[0].requestId).toMatch(/^req_/)
  expect(requests[0].tokenId).toMatch(/^tok_/)
  expect(requests[0].durationMs).toBeGreaterThan(0)
  const metrics = await app.metrics.registry.metrics()
  expect(metrics).toContain(
    'berth_http_request_duration_seconds_count{method="GET",route="/api/projects",status="200"} 1',
  )
  expect(metrics).toContain('berth_http_problems_total{code="validation_failed"} 1')
  await app.close()
  await api.stop()
})

test('a lost database is answered by 503 with Retry-After, and found again without a restart', async () => {
  const database = await createDatabase()
  const link = await cuttable(Number(new URL(database.url).port))
  const url = new URL(database.url)
  url.port = String(link.port)
  const api = await startApi({ DATABASE_URL: url.href })
  await api.newProject('p')
  link.cut()
  const lost = await api.call('GET', '/projects/p')
  expect(lost).toMatchObject({ status: 503, body: { code: 'database_unavailable' } })
  expect(lost.headers['retry-after']).toBeDefined()
  expect((await api.app.inject({ url: '/healthz' })).statusCode).toBe(200)
  expect((await api.app.inject({ url: '/readyz' })).statusCode).toBe(503)
  await link.mend()
  await until(async () => (await api.app.inject({ url: '/readyz' })).statusCode === 200)
  expect((await api.call('GET', '/projects/p')).status).toBe(200)
  await api.stop()
  link.close()
  await database.drop()
})

/** A TCP link to PostgreSQL that can be cut and mended, as a network or a server is. */
async function cuttable(target: number) {
  const { connect } = await import('node:net')
  const sockets = new Set<Socket>()
  let server: Server
  const open = (port: number) =>
    new Promise<void>((resolve) => {
      server = createServer((near) => {
        const far = connect(target, '127.0.0.1')
        for (const socket of [near, far]) {
          sockets.add(socket)
          socket.on('error', () => {})
          socket.on('close', () => sockets.delete(socket))
        }
        near.pipe(far).pipe(near)
      })
      server.listen(port, '127.0.0.1', resolve)
    })
  await open(0)
  const { port } = server!.address() as { port: number }
  const cut = () => {
    server.close()
    for (const socket of sockets) socket.destroy()
  }
  return { port, cut, mend: () => open(port), close: cut }
}
