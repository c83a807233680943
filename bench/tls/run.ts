// `npm run bench -- tls`: a file over HTTPS and handshakes with the edge and Caddy in turns; the memory of many certificates.
import { randomBytes } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { request } from 'node:https'
import { join } from 'node:path'
import { type Child, freePort, startChild } from '../children.ts'
import { startCaddyWith } from '../edge/peers.ts'
import { compiledProgram, type EdgeProcess, startEdge } from '../edge/processes.ts'
import { domainHost, fileContent, filePath, seed } from '../edge/seed.ts'
import { load } from '../edge/visits.ts'
import { median, medianRatio, table, verdict } from '../figures.ts'
import type { Bench, Figure } from '../group.ts'
import { findProgram } from '../programs.ts'
import type { Result, Load } from './handshakes.ts'
import { seedCertificates, visitedHost } from './seed.ts'

const limits = { throughput: 1, memoryMb: 400 }
const connections = 64

type Server = { name: string; port: number; perSecond: number[]; handshakes: number[] }

const figures = {
  requests: { what: 'A 10 KB file over HTTPS, requests per second', against: 'Caddy', needs: ['wrk', 'caddy'] },
  handshakes: { what: 'Full TLS handshakes per second', against: 'Caddy', needs: ['caddy'] },
  memory: { what: 'Memory with 10,000 certificates, each used', against: '–' },
} satisfies Record<string, Figure>

type TlsBench = Bench<keyof typeof figures>

export const group = { about: 'Files from the edge over HTTPS, and many certificates', figures, run }

async function run(bench: TlsBench): Promise<void> {
    const { directory, atEnd } = bench
    const certificates = bench.size(10_000, 20)
    const postgres = await bench.startPostgres()
    const dataDir = join(directory, 'edge')
    await mkdir(dataDir)
    console.error(`${certificates.toLocaleString('en')} domains with a certificate each …`)
    const databaseUrl = await seed(postgres, 'tls', dataDir, certificates)
    const secretsKey = randomBytes(32)
    const issued = await seedCertificates(databaseUrl, secretsKey, certificates)

    const httpsPort = await freePort()
    const environment = {
      DATABASE_URL: databaseUrl,
      DATA_DIR: dataDir,
      DEPLOYMENT_DOMAIN: 'bench.test',
      // The edge refuses a domain's certificate for the API's own host, which is localhost by default, like the visited host.
      BASE_URL: 'http://api.bench.test',
      SECRETS_KEY: secretsKey.toString('base64'),
      EDGE_HTTPS_PORT: String(httpsPort),
    }
    const program = await compiledProgram()
    const edge = await startEdge(program, environment, join(directory, 'edge.log'))
    atEnd(() => edge.stop())
    const startedBytes = await edge.residentBytes()

    const served = join(directory, 'served')
    await mkdir(served)
    await writeFile(join(served, filePath), fileContent(1))
    const caddy = await startCaddyWith(directory, [`root * ${served}`, 'file_server'], { host: visitedHost, ...issued })
    if (caddy) atEnd(() => caddy.stop())
    const client = await startChild(join(import.meta.dirname, 'handshakes.ts'), {})
    atEnd(() => client.stop())

    const servers: Server[] = [{ name: 'edge', port: httpsPort, perSecond: [], handshakes: [] }]
    if (caddy) servers.push({ name: caddy.name, port: caddy.port, perSecond: [], handshakes: [] })
    await measure(bench, servers, client)
    report(bench, servers)
    await reportMemory(bench, edge, client, httpsPort, certificates, startedBytes)
}

async function measure(bench: TlsBench, servers: Server[], client: Child): Promise<void> {
  const [rounds, seconds] = [bench.rounds(5), bench.seconds(3)]
  const wrk = findProgram('wrk')
  const slice = async ({ port, perSecond, handshakes }: Server, seconds: number) => {
    const url = `https://${visitedHost}:${port}${filePath}`
    if (wrk !== null) perSecond.push(await load(wrk, url, `Host: ${visitedHost}`, { connections, seconds }))
    const { handshakes: count, elapsedMs } = await ask(client, { port, names: [visitedHost], seconds })
    handshakes.push(count / (elapsedMs / 1000))
  }
  for (const server of servers) {
    await expectFile(server)
    if (bench.smoke) continue
    await slice(server, 2)
    server.perSecond.length = 0
    server.handshakes.length = 0
  }
  for (let round = 0; round < rounds; round++) {
    console.error(`requests/s and handshakes/s, round ${round + 1} of ${rounds} …`)
    // Alternates the order, so that a machine that gets slower or faster favours no side.
    for (const server of round % 2 === 0 ? servers : servers.toReversed()) await slice(server, seconds)
  }
}

const ask = (client: Child, question: Load) => client.ask<Result>(question)

/** Checks that all serve the same bytes. */
async function expectFile({ name, port }: Server): Promise<void> {
  const text = await new Promise<string>((resolve, reject) => {
    const target = {
      port,
      host: '127.0.0.1',
      servername: visitedHost,
      rejectUnauthorized: false,
      agent: false as const,
    }
    const sent = request({ ...target, path: filePath, headers: { host: visitedHost } }, async (response) => {
      const text = Buffer.concat(await response.toArray()).toString()
      resolve(response.statusCode === 200 ? text : `status ${response.statusCode}`)
    })
    sent.on('error', reject).end()
  })
  if (text !== fileContent(1)) throw new Error(`${name} does not serve the file: ${text.slice(0, 200)}`)
}

function report(bench: TlsBench, servers: Server[]): void {
  const [edge, caddy] = servers as [Server, Server | undefined]
  const row = (kind: string, { name }: Server, values: number[], own: number[]) => [
    `${name}, ${kind}`,
    ...[median(values), Math.min(...values), Math.max(...values)].map((value) => value.toFixed(0)),
    medianRatio(own, values).toFixed(2),
  ]
  const rows = [['HTTPS', 'per second', 'least', 'most', 'edge / it']]
  for (const server of servers) {
    if (server.perSecond.length > 0) rows.push(row('10 KB file', server, server.perSecond, edge.perSecond))
  }
  for (const server of servers) rows.push(row('full handshakes', server, server.handshakes, edge.handshakes))
  console.log(`${table(rows)}\n`)
  if (!caddy) return
  if (caddy.perSecond.length > 0) {
    const measured = medianRatio(edge.perSecond, caddy.perSecond)
    bench.record('requests', measured)
    const bound = `requests/s over HTTPS at least ${limits.throughput} of Caddy`
    console.log(verdict(measured >= limits.throughput, bound, measured.toFixed(2)))
  }
  bench.record('handshakes', medianRatio(edge.handshakes, caddy.handshakes))
}

/** Requests every certificate once, so that the edge holds as much as it ever will. */
async function reportMemory(
  bench: TlsBench,
  edge: EdgeProcess,
  client: Child,
  port: number,
  certificates: number,
  startedBytes: number,
): Promise<void> {
  const count = certificates.toLocaleString('en')
  console.error(`every one of ${count} certificates …`)
  const names = Array.from({ length: certificates }, (_, i) => (i === 0 ? visitedHost : domainHost(i + 1)))
  await ask(client, { port, names, seconds: null })
  const sweptBytes = await edge.residentBytes()
  const mb = (bytes: number) => (bytes / 2 ** 20).toFixed(0)
  console.log(`resident memory: ${mb(startedBytes)} MB after the start, ${mb(sweptBytes)} MB after requesting each certificate`)
  const maxBytes = Math.max(startedBytes, sweptBytes)
  bench.record('memory', `${mb(maxBytes)} MB`)
  const bound = `memory with ${count} certificates, domains and deployments under ${limits.memoryMb} MB`
  console.log(verdict(maxBytes < limits.memoryMb * 2 ** 20, bound, `${mb(maxBytes)} MB`))
}
