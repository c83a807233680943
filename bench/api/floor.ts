// The floor: bare Fastify and pg doing the API's work, with the same token lookup, rows, notifications and JSON, but
// without validation, logs, limits and request IDs, and with as few database round trips as possible.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import Fastify, { type FastifyReply, type FastifyRequest } from 'fastify'
import pg from 'pg'
import { newId, randomLabel } from '../../src/platform/ids.ts'
import { hashToken } from '../../src/platform/secrets/secrets.ts'
import { schemas } from '../../src/schemas/all.ts'
import { Named } from '../../src/schemas/common.ts'
import { Deployment } from '../../src/schemas/deployments.ts'
import { DnsRecord, DnsRecordList } from '../../src/schemas/dns-records.ts'
import { Domain, DomainVerification } from '../../src/schemas/domains.ts'
import { ProjectSettings } from '../../src/schemas/project-settings.ts'
import { Project, ProjectList } from '../../src/schemas/projects.ts'
import { Ticket } from '../../src/schemas/tickets.ts'
import { answerParent, usage } from '../children.ts'
import { completerOf, emptyOf } from './floor-fields.ts'
import { statementsOn } from './floor-statements.ts'

const { DATABASE_URL, DATABASE_POOL, REPOSITORIES, PORT } = process.env as Record<string, string>
const pool = new pg.Pool({ connectionString: DATABASE_URL!, max: Number(DATABASE_POOL) })

const { rows: stored } = await pool.query(
  `SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'`,
)
const statements = statementsOn(
  (table) => new Set(stored.filter((row) => row.table_name === table).map((row) => row.column_name)),
)

async function query(name: keyof typeof statements, values: unknown[]) {
  return (await pool.query({ name, text: statements[name], values })).rows
}

type Known = { id: string; accountId: string; revokedAt: Date | null; expiresAt: Date | null; suspended: boolean }

const tokens = new Map<string, Known>()

async function authenticate(request: FastifyRequest): Promise<Known> {
  const hash = hashToken((request.headers.authorization ?? '').slice(7))
  const key = hash.toString('base64')
  let known = tokens.get(key)
  if (!known) {
    const [found] = await query('tokenByHash', [hash])
    if (!found) throw Object.assign(new Error('bad token'), { statusCode: 401 })
    known = found as Known
    tokens.set(key, known)
  }
  const now = Date.now()
  if (known.suspended || (known.revokedAt && +known.revokedAt <= now) || (known.expiresAt && +known.expiresAt <= now)) {
    throw Object.assign(new Error('refused token'), { statusCode: 401 })
  }
  return known
}

const missing = (reply: FastifyReply) => reply.code(404).send({ title: 'Not found' })
const inTheWay = (reply: FastifyReply) => reply.code(409).send({ title: 'Conflict' })
const edgeUrl = (label: string) => `http://${label}.localhost:8080`
const region = 'local-1'
const nameservers = ['ns1.berth.test', 'ns2.berth.test']
const cursorOf = (...parts: string[]) => Buffer.from(JSON.stringify(parts)).toString('base64url')

// Fields, their order and the serializers come from the API's schemas.
const empty = {
  deployment: emptyOf(Deployment),
  domain: emptyOf(Domain),
  verification: emptyOf(DomainVerification),
  record: emptyOf(DnsRecord),
  ticket: emptyOf(Ticket),
}
const completeDeployment = completerOf(Deployment)
const completeRecord = completerOf(DnsRecord)
const completeProject = completerOf(Project)
const completeSettings = completerOf(ProjectSettings)

const app = Fastify()
for (const schema of schemas) app.addSchema(schema)

app.post<{ Body: { project: string; ref?: string; production?: boolean } }>(
  '/api/deployments',
  { schema: { response: { 201: Named(Deployment) } } },
  async (request, reply) => {
    const { id: tokenId, accountId } = await authenticate(request)
    const [project] = await query('projectByName', [accountId, request.body.project])
    if (!project) return missing(reply)
    const ref = request.body.ref ?? project.branch
    const commit = (await readFile(join(REPOSITORIES!, `${project.repo}.git`, 'refs/heads', ref), 'utf8')).trim()
    const now = new Date()
    const id = newId('dpl')
    const label = `${project.name}-${randomLabel(9)}`
    const production = request.body.production ?? false
    const view = {
      ...empty.deployment,
      id,
      project: project.name,
      state: 'BUILDING',
      ref,
      commit: commit.slice(0, 7),
      production,
      url: edgeUrl(label),
      region,
      createdAt: now.toISOString(),
      source: 'api',
      current: false,
      branchUrl: edgeUrl(`${project.name}-git-${ref}`),
      commitSha: commit,
      untrusted: false,
    }
    const event = [newId('evt'), accountId, tokenId, JSON.stringify(view), JSON.stringify({ deploymentId: id })]
    const made = await query('insertDeployment', [id, project.id, ref, commit, production, label, now, ...event])
    if (made.length === 0) return missing(reply)
    reply.code(201).header('location', `/api/deployments/${id}`)
    return view
  },
)

app.get<{ Params: { id: string } }>(
  '/api/deployments/:id',
  { schema: { response: { 200: Named(Deployment) } } },
  async (request, reply) => {
    const { accountId } = await authenticate(request)
    const [row] = await query('deploymentById', [request.params.id, accountId])
    if (!row) return missing(reply)
    row.commitSha = row.commit || null
    row.commit = row.commit.slice(0, 7)
    row.url = edgeUrl(row.label)
    if (row.errorCode) row.error = { code: row.errorCode, message: row.errorMessage }
    row.bytes = row.state === 'READY' ? Number(row.storedBytes) || null : null
    // Seeded deployments aren't queued, so none has a queue position.
    return completeDeployment(row)
  },
)

const domainResponse = { schema: { response: { 201: Named(Domain) } } }
app.post<{ Body: { project: string; name: string } }>('/api/domains', domainResponse, async (request, reply) => {
  const { id: tokenId, accountId } = await authenticate(request)
  const { project, name } = request.body
  const labels = name.split('.')
  const names = labels.map((_, index) => labels.slice(index).join('.'))
  const now = new Date()
  const id = newId('dom')
  const txt = `berth-verify=${randomLabel(26)}`
  const view = {
    ...empty.domain,
    name,
    project,
    verified: false,
    ssl: 'PENDING',
    nameservers,
    createdAt: now.toISOString(),
    verification: {
      ...empty.verification,
      txt: { name: `_berth.${name}`, value: txt },
      nextCheckAt: now.toISOString(),
      observed: { nameservers: [], txt: [], asked: [] },
    },
    takedown: null,
  }
  const event = [newId('evt'), accountId, tokenId, JSON.stringify(view), JSON.stringify({ domainId: id })]
  const [made] = await query('insertDomain', [id, project, name, txt, now, names, ...event, nameservers])
  if (!made) return missing(reply)
  if (!made.id) return inTheWay(reply)
  reply.code(201).header('location', `/api/domains/${name}`)
  return view
})

type RecordBody = { type: string; name: string; value: string; ttl?: number; comment?: string }

const recordsPath = '/api/dns/:domain/records'
const recordResponse = { schema: { response: { 201: Named(DnsRecord) } } }
app.post<{ Params: { domain: string }; Body: RecordBody }>(recordsPath, recordResponse, async (request, reply) => {
  const { id: tokenId, accountId } = await authenticate(request)
  const { domain } = request.params
  const { type, name, value, ttl = 300, comment = null } = request.body
  const now = new Date()
  const id = newId('rec')
  const at = now.toISOString()
  const view = { ...empty.record, id, domain, type, name, value, ttl, createdAt: at, updatedAt: at, comment }
  const event = [newId('evt'), accountId, tokenId, JSON.stringify(view)]
  const [made] = await query('insertRecord', [id, domain, type, name, value, ttl, comment, now, ...event])
  if (!made) return missing(reply)
  if (!made.id) return inTheWay(reply)
  reply.code(201).header('location', `/api/dns/${domain}/records/${id}`)
  return view
})

app.get<{ Params: { domain: string }; Querystring: { limit?: string; cursor?: string } }>(
  recordsPath,
  { schema: { response: { 200: Named(DnsRecordList) } } },
  async (request, reply) => {
    const { accountId } = await authenticate(request)
    const { domain } = request.params
    const limit = Number(request.query.limit ?? 20)
    const after = JSON.parse(Buffer.from(request.query.cursor ?? 'WyIiLCIiLCIiLCIiXQ', 'base64url').toString())
    const rows = await query('recordPage', [accountId, domain, after[2], after[3], limit + 1])
    const records = rows.slice(0, limit).map(completeRecord)
    const last = records[records.length - 1]
    const latestCursor = last
      ? cursorOf('records', 'asc', last.name as string, last.id as string)
      : (request.query.cursor ?? null)
    const hasMore = rows.length > limit
    if (hasMore) {
      reply.header('link', `</api/dns/${domain}/records?limit=${limit}&cursor=${latestCursor}>; rel="next"`)
    }
    return { records, hasMore, nextCursor: hasMore ? latestCursor : null, latestCursor }
  },
)

app.get('/api/projects', { schema: { response: { 200: Named(ProjectList) } } }, async (request, reply) => {
  const { accountId } = await authenticate(request)
  const rows = await query('projectPage', [accountId, 21])
  const projects = rows.slice(0, 20).map((row) => {
    row.productionUrl = edgeUrl(row.label)
    // False means that each deployment decides itself.
    row.spaFallback ||= null
    row.settings = completeSettings(row)
    return completeProject(row)
  })
  const hasMore = rows.length > 20
  const last = projects[projects.length - 1]
  const latestCursor = last ? cursorOf('projects', 'asc', last.name as string) : null
  if (hasMore) reply.header('link', `</api/projects?cursor=${latestCursor}>; rel="next"`)
  return { projects, hasMore, nextCursor: hasMore ? latestCursor : null, latestCursor }
})

type TicketBody = { subject: string; message: string; priority?: string }
const ticketResponse = { schema: { response: { 201: Named(Ticket) } } }
app.post<{ Body: TicketBody }>('/api/tickets', ticketResponse, async (request, reply) => {
  const { id: tokenId, accountId } = await authenticate(request)
  const { subject, message, priority = 'normal' } = request.body
  const now = new Date()
  const id = newId('tkt')
  const at = now.toISOString()
  const view = { ...empty.ticket, id, subject, status: 'OPEN', priority, createdAt: at, updatedAt: at }
  const event = [newId('evt'), accountId, tokenId, JSON.stringify(view)]
  await query('insertTicket', [id, newId('msg'), subject, message, priority, now, ...event])
  reply.code(201).header('location', `/api/tickets/${id}`)
  return view
})

await app.listen({ host: '127.0.0.1', port: Number(PORT) })
answerParent(usage, async () => {
  await app.close()
  await pool.end()
})
