import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer, get, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { loadConfig } from '../../src/config.ts'
import { type Running, roles, run } from '../../src/roles/run.ts'
import { createDatabase } from '../helpers/database.ts'
import { freePort } from '../helpers/ports.ts'
import { until } from '../helpers/until.ts'
import { type Collector, type ReceivedSpan, startCollector } from './collector.ts'

const root = join(import.meta.dirname, '../..')

let database: Awaited<ReturnType<typeof createDatabase>>
let collector: Collector
let receiver: Server
let berth: Running
let dataDir: string
let ports: { api: number; metrics: number; edge: number }
let token: string
const delivered: string[] = []

// OpenTelemetry's own variables: spans are sent soon, and a collector that hangs is given up soon.
const telemetry = { OTEL_BSP_SCHEDULE_DELAY: '50', OTEL_EXPORTER_OTLP_TIMEOUT: '300' }

beforeAll(async () => {
  Object.assign(process.env, telemetry)
  database = await createDatabase()
  collector = await startCollector()
  receiver = createServer((request, response) => {
    delivered.push(request.url ?? '')
    response.end()
  })
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  dataDir = await mkdtemp(join(tmpdir(), 'berth-observed-'))
  ports = { api: await freePort(), metrics: await freePort(), edge: await freePort() }
  const config = loadConfig({
    DATABASE_URL: database.url,
    DATA_DIR: dataDir,
    PATH: process.env.PATH,
    PORT: String(ports.api),
    METRICS_PORT: String(ports.metrics),
    EDGE_HTTP_PORT: String(ports.edge),
    EDGE_HTTPS_PORT: String(await freePort()),
    NAMESERVER_LISTEN: `127.0.0.1:${await freePort()},127.0.0.1:${await freePort()}`,
    WEBHOOK_ALLOW_PRIVATE: 'true',
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    LOG_LEVEL: 'silent',
  })
  berth = await run(config, roles)
  token = berth.testKey!
})
afterAll(async () => {
  for (const name of Object.keys(telemetry)) delete process.env[name]
  await berth.stop()
  await collector.close()
  receiver.close()
  await database.drop()
  await rm(dataDir, { recursive: true, force: true })
})

async function call(method: string, path: string, body?: object, headers: Record<string, string> = {}) {
  const response = await fetch(`http://127.0.0.1:${ports.api}/api${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }), ...headers },
    ...(body && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  expect(response.status, text).toBeLessThan(400)
  return text === '' ? null : JSON.parse(text)
}

const scrape = async () => {
  const response = await fetch(`http://127.0.0.1:${ports.metrics}/metrics`)
  return { status: response.status, text: await response.text() }
}
const valueIn = (text: string, series: string) => {
  const line = text.split('\n').find((one) => one.startsWith(`${series} `))
  return line === undefined ? undefined : Number(line.slice(series.length + 1))
}

const spansOf = (traceId: string) => collector.spans.filter((span) => span.traceId === traceId)
/** The names from a span up to the one without a parent here. */
function wayOf(span: ReceivedSpan | undefined): string[] {
  const way: string[] = []
  for (let at = span; at; at = collector.spans.find(({ spanId }) => spanId === at!.parentSpanId)) way.unshift(at.name)
  return way
}

describe('a trace', () => {
  const traceId = '0af7651916cd43dd8448eb211c80319c'

  test('leads from the caller through the request and its job to the build and the delivery', async () => {
    const { port } = receiver.address() as AddressInfo
    await call('POST', '/webhooks', { url: `http://127.0.0.1:${port}/hush?key=hush`, events: ['deployment.ready'] })
    await call('PUT', '/projects/hello/env/HUSH', { value: 'hush-value' })
    await call('GET', '/projects?search=hush')
    const traceparent = `00-${traceId}-b7ad6b7169203331-00`
    const made = await call('POST', '/deployments', { project: 'hello' }, { traceparent, tracestate: 'hush=1' })
    await until(() => delivered.length > 0)
    const named = (name: string) => spansOf(traceId).find((span) => span.name === name)
    // Spans are sent in batches, each once it has ended.
    await until(() => wayOf(named('delivery')).length > 3 && wayOf(named('build')).length > 2)
    expect(wayOf(named('build'))).toEqual(['POST /api/deployments', 'job build', 'build'])
    // The event of READY is written within the build.
    expect(wayOf(named('delivery'))).toEqual(['POST /api/deployments', 'job build', 'build', 'delivery'])
    const request = named('POST /api/deployments')!
    expect(request.parentSpanId).toBe('b7ad6b7169203331')
    expect(request.attributes).toMatchObject({
      'http.request.method': 'POST',
      'http.route': '/api/deployments',
      'http.response.status_code': 201,
    })
    expect(named('build')!.attributes).toMatchObject({ 'berth.deployment.id': made.id })
    expect(named('delivery')!.attributes).toMatchObject({ 'http.response.status_code': 200 })
    expect(collector.resources[0]).toMatchObject({ 'service.name': 'berth', 'berth.roles': [...roles] })
  })

  test('leads from a domain through its verification to its certificate', async () => {
    const made = await call('POST', '/domains', { name: 'traced.test', project: 'hello' })
    expect(made.name).toBe('traced.test')
    const names = (span: ReceivedSpan) => span.attributes['berth.certificate.names'] as string[]
    const issue = await until(() =>
      collector.spans.find((span) => span.name === 'issue' && names(span).includes('traced.test')),
    )
    const way = await until(() => wayOf(issue).length > 3 && wayOf(issue))
    expect(way).toEqual(['POST /api/domains', 'job verify', 'job issue', 'issue'])
  })

  test('begins anew where the caller sends no valid traceparent', async () => {
    for (const wrong of [`00-${'0'.repeat(32)}-b7ad6b7169203331-01`, 'x', `ff-${traceId}-b7ad6b7169203331-01`]) {
      const before = spansOf(traceId).length
      await call('GET', '/tickets', undefined, { traceparent: wrong })
      expect(spansOf(traceId)).toHaveLength(before)
    }
    const roots = await until(() => {
      const found = collector.spans.filter(({ name }) => name === 'GET /api/tickets')
      return found.length === 3 && found
    })
    expect(roots.every(({ parentSpanId }) => parentSpanId === '')).toBe(true)
    expect(new Set(roots.map((span) => span.traceId)).size).toBe(3)
  })

  test('holds no secret, no query and no address of a webhook', () => {
    expect(collector.text()).not.toMatch(/hush|brt_|whsec_/)
    expect(collector.text()).not.toContain(token)
  })

  test.each(['hang', 'refuse'] as const)('does no harm where the collector cannot take it: %s', async (mode) => {
    collector.mode = mode
    const before = collector.requests
    await call('POST', '/tickets', { subject: mode, message: 'x' })
    await until(() => collector.requests > before)
    expect((await call('GET', '/projects')).projects.length).toBeGreaterThan(0)
    collector.mode = 'take'
  })
})

describe('/metrics', () => {
  test('tells of builds, queue, pool, notifications, certificates, the edge, servers, streams and the version', async () => {
    const { deployments } = await call('GET', '/deployments')
    const { hostname } = new URL(deployments[0].url)
    const asked = get({ port: ports.edge, host: '127.0.0.1', headers: { host: hostname } })
    const [visit] = (await once(asked, 'response')) as [IncomingMessage]
    await once(visit.resume(), 'end')
    expect(visit.statusCode).toBeLessThan(400)
    const { text } = await scrape()
    const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
    expect(text).toContain(`berth_build_info{version="${version}",node="${process.versions.node}"`)
    expect(valueIn(text, 'berth_builds_total{result="ready"}')).toBe(1)
    expect(valueIn(text, 'berth_build_duration_seconds_count{result="ready"}')).toBe(1)
    expect(valueIn(text, 'berth_build_wait_seconds_count')).toBe(1)
    expect(valueIn(text, 'berth_builds_running')).toBe(0)
    for (const kind of ['build', 'reap', 'verify', 'issue', 'status']) {
      expect(valueIn(text, `berth_jobs_waiting{kind="${kind}"}`)).toBeDefined()
      expect(valueIn(text, `berth_jobs_failed{kind="${kind}"}`)).toBe(0)
    }
    expect(valueIn(text, 'berth_notifications_connected')).toBe(1)
    expect(valueIn(text, 'berth_notifications_reconnections_total')).toBe(0)
    expect(valueIn(text, 'berth_database_pool_connections{pool="requests",state="in_use"}')).toBeGreaterThanOrEqual(0)
    expect(valueIn(text, 'berth_database_pool_waiting{pool="workers"}')).toBe(0)
    expect(valueIn(text, 'berth_certificates_earliest_expiry_days{scope="platform"}')).toBeGreaterThan(1)
    expect(valueIn(text, 'berth_certificates_failing{scope="platform"}')).toBe(0)
    expect(valueIn(text, 'berth_server_restarts_total')).toBe(0)
    expect(valueIn(text, 'berth_http_open{kind="streams"}')).toBe(0)
    expect(valueIn(text, 'berth_secrets_unopened_total')).toBe(0)
    const visits = ['plain', 'full'].map((kind) =>
      valueIn(text, `berth_edge_request_duration_seconds_count{kind="${kind}"}`),
    )
    expect(visits.reduce((sum, one) => sum! + one!, 0)).toBeGreaterThan(0)
    const buckets = text
      .split('\n')
      .filter((line) => line.startsWith('berth_edge_request_duration_seconds_bucket{kind="full"'))
    const counts = buckets.map((line) => Number(line.split(' ')[1]))
    expect([...counts].sort((a, b) => a - b)).toEqual(counts)
    expect(counts.at(-1)).toBe(visits[1])
  })

  test('has every metric that a rule or the dashboard names', async () => {
    const rules = parse(await readFile(join(root, 'deploy/prometheus/berth.rules.yml'), 'utf8'))
    const dashboard = await readFile(join(root, 'deploy/grafana/berth.json'), 'utf8')
    const expressions = rules.groups.flatMap((group: { rules: { expr: string }[] }) =>
      group.rules.map(({ expr }) => expr),
    )
    const named = new Set(`${expressions.join('\n')}${dashboard}`.match(/\b(berth|nodejs|process)_[a-z0-9_]+/g))
    expect(named.size).toBeGreaterThan(40)
    const { text } = await scrape()
    const known = new Set(
      [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].flatMap(([, name, type]) =>
        type === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name!],
      ),
    )
    expect([...named].filter((name) => !known.has(name))).toEqual([])
    const panels = JSON.parse(dashboard).panels
    expect(new Set(panels.map(({ id }: { id: number }) => id)).size).toBe(panels.length)
  })
})

test.skipIf(!isInstalled())('promtool takes the rules and the configuration', () => {
  for (const args of [
    ['check', 'rules', 'deploy/prometheus/berth.rules.yml'],
    ['check', 'config', 'deploy/prometheus/prometheus.yml'],
  ]) {
    expect(execFileSync('promtool', args, { cwd: root, encoding: 'utf8' })).toContain('SUCCESS')
  }
})

function isInstalled(): boolean {
  try {
    execFileSync('promtool', ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    if (process.env.BERTH_REQUIRE_PEERS === '1') throw new Error('promtool is not installed')
    return false
  }
}
