// An account with a life of its own, for pictures: every figure in it is invented.
import { createHash } from 'node:crypto'
import { newId } from '../../src/platform/ids.ts'
import { durationBoundsMs } from '../../src/schemas/traffic-columns.ts'
import { createAccount } from '../../src/services/accounts/accounts.ts'
import { createDeployment } from '../../src/services/deployments/deployments.ts'
import type { Actor } from '../../src/services/identity/actor.ts'
import { addMember } from '../../src/services/people/memberships.ts'
import { createUser } from '../../src/services/people/users.ts'
import type { TestApi } from '../helpers/api.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs
const ago = (ms: number) => new Date(Date.now() - ms)

type Project = Awaited<ReturnType<TestApi['newProject']>>

/** Ids for addresses. */
export type Furnished = Record<'ticket' | 'token' | 'other', string>

export async function furnish(api: TestApi): Promise<Furnished> {
  const { db, accountId } = api
  await db.account.update({ where: { id: accountId }, data: { name: 'acme' } })
  const made = async (path: string, body?: object, token = api.token) => {
    const answer = await api.call('POST', path, { body, token })
    if (answer.status >= 300) throw new Error(`${path}: ${answer.text}`)
    return answer.body
  }
  const projects = new Map<string, Project>()
  for (const name of ['docs', 'shop', 'blog']) projects.set(name, await api.newProject(name))
  await deployments(api, projects)
  await domains(api, made)
  for (const [name, scale] of [
    ['docs', 900],
    ['shop', 2_400],
    ['blog', 120],
  ] as const)
    await traffic(api, projects.get(name)!.id, scale)
  await made('/projects/docs/hook')
  for (const [key, target] of [
    ['API_URL', 'preview'],
    ['API_URL', 'production'],
    ['SENTRY_DSN', 'production'],
  ] as const)
    await api.call('PUT', `/projects/docs/env/${key}?target=${target}`, { body: { value: 'x', readable: false } })
  await made('/webhooks', { url: 'https://chat.example.com/hooks/berth', events: ['deployment.error', 'domain.*'] })
  await made('/webhooks', { url: 'https://ops.example.com/events', events: ['*'] })
  const token = await made('/tokens', {
    name: 'ci',
    scopes: ['deployments:write', 'projects:read'],
    projects: ['docs'],
  })
  await made('/tokens', { name: 'acme.sh', scopes: ['dns:write'] })
  await made('/tokens', { name: 'dashboards', scopes: ['events:read', 'projects:read', 'deployments:read'] })
  await people(api, made)
  return { token: token.id, ...(await tickets(api, made)), ...(await operator(api, made)) }
}

type Make = (path: string, body?: object, token?: string) => Promise<Project>

async function deployments({ db, deps, accountId }: TestApi, projects: Map<string, Project>): Promise<void> {
  const actor: Actor = { accountId, tokenId: 'system', scopes: [], projectIds: null }
  const rows = [
    ['blog', 'main', 'Write about the harbour', true, 3 * dayMs],
    ['docs', 'main', 'Explain how a zone is pasted', true, 2 * dayMs],
    ['docs', 'search', 'Find pages by their words', false, 26 * hourMs],
    ['shop', 'main', 'Checkout: round totals per line', true, 5 * hourMs],
    ['docs', 'bundler', 'Try another bundler', false, 3 * hourMs],
    ['docs', 'main', 'Draw the console in the dark', true, 40 * minuteMs],
    ['shop', 'main', 'Ship to islands', true, 12 * minuteMs],
  ] as const
  for (const [index, [name, ref, commitMessage, production, before]] of rows.entries()) {
    const project = projects.get(name)!
    const commit = createHash('sha1').update(commitMessage).digest('hex')
    const plan = { project, ref, commit, region: 'local-1', source: 'api', production } as const
    const { id } = await createDeployment(db, deps.urls, actor, plan)
    await db.job.deleteMany({ where: { key: id } })
    const failed = ref === 'bundler' || commitMessage === 'Ship to islands'
    const took = { queue: 300, clone: 900, install: 6_200, build: 9_400 + index * 300, publish: 700 }
    const steps = Object.entries(took).map(([step, durationMs]) => ({ name: step, durationMs }))
    await db.deployment.update({
      where: { id },
      data: {
        commitMessage,
        state: failed ? 'ERROR' : 'READY',
        createdAt: ago(before),
        startedAt: ago(before - 300),
        finishedAt: ago(before - 17_800 - index * 300),
        steps: steps.slice(1, failed ? 4 : 5),
        ...(failed
          ? { errorCode: 'build_failed', errorMessage: 'npm run build ended with 1.' }
          : { readyAt: ago(before - 17_800), files: 212, storedBytes: 8_400_000 }),
      },
    })
    if (production && !failed) await db.project.update({ where: { id: project.id }, data: { currentDeploymentId: id } })
  }
}

async function domains({ db }: TestApi, made: Make): Promise<void> {
  for (const [name, project] of [
    ['acme.test', 'shop'],
    ['docs.acme.test', 'docs'],
    ['blog.acme.test', 'blog'],
  ] as const)
    await made('/domains', { name, project })
  const certificate = (name: string) => ({
    issuer: 'CN=R11,O=Let’s Encrypt,C=US',
    serial: '04b1f2a7',
    notBefore: ago(20 * dayMs).toISOString(),
    notAfter: ago(-70 * dayMs).toISOString(),
    sans: [name],
    lastError: null,
    nextAttemptAt: ago(-40 * dayMs).toISOString(),
  })
  for (const name of ['acme.test', 'docs.acme.test'])
    await db.domain.updateMany({
      where: { name },
      data: {
        ...{ verified: true, verifiedAt: ago(20 * dayMs), method: 'nameservers', ssl: 'ACTIVE', reason: null },
        certificate: certificate(name),
      },
    })
}

/** More by day than by night, by the hour for a week and by the minute for two days. */
async function traffic({ db, config }: TestApi, projectId: string, scale: number): Promise<void> {
  const host = `docs.${new URL(config.baseUrl).hostname}`
  const rowOf = (step: string, stepMs: number, index: number) => {
    const at = new Date(Math.floor(Date.now() / stepMs) * stepMs - index * stepMs)
    const share = 1.2 + Math.sin(((at.getUTCHours() + at.getUTCMinutes() / 60 - 9) / 12) * Math.PI)
    const count = Math.round((scale * share * (0.9 + ((index * 7) % 10) / 50) * stepMs) / hourMs)
    const durations = Object.fromEntries([...durationBoundsMs, 0].map((_, at) => [`d${at}`, 0n]))
    const fast = Math.round(count * 0.9)
    return {
      ...{ projectId, step, at, host, bytes: BigInt(count * 18_400), durationUs: BigInt(count * 900) },
      ...{ s1: 0n, s2: BigInt(Math.round(count * 0.93)), s3: BigInt(Math.round(count * 0.04)) },
      ...{ s4: BigInt(Math.round(count * 0.028)), s5: BigInt(Math.round(count * 0.002)) },
      ...durations,
      ...{ d3: BigInt(fast), d6: BigInt(count - fast) },
    } as Parameters<typeof db.traffic.create>[0]['data']
  }
  const rows = [
    ...Array.from({ length: 7 * 24 }, (_, index) => rowOf('hour', hourMs, index)),
    ...Array.from({ length: 26 * 60 }, (_, index) => rowOf('minute', minuteMs, index)),
  ]
  await db.traffic.createMany({ data: rows as never })
}

async function people({ db, accountId }: TestApi, made: Make): Promise<void> {
  for (const [name, role] of [
    ['Grace', 'admin'],
    ['Edsger', 'developer'],
    ['Barbara', 'viewer'],
  ] as const)
    await db.$transaction(async (tx) => {
      const user = await createUser(tx, { email: `${name.toLowerCase()}@example.com`, name, proved: true })
      await addMember(tx, { accountId, user, role, projectIds: [] })
    })
  await made('/members/invitations', { email: 'margaret@example.com', role: 'developer', projects: ['docs'] })
}

async function tickets({ db }: TestApi, made: Make): Promise<{ ticket: string }> {
  const rows = [
    ['Where do I read the address of a visitor?', 'low', 'RESOLVED'],
    ['The certificate of blog.acme.test does not come', 'normal', 'IN_PROGRESS'],
    ['The build cannot find my lockfile', 'high', 'WAITING'],
  ] as const
  let id = ''
  for (const [subject, priority, status] of rows) {
    id = (await made('/tickets', { subject, priority, message: 'The install step ends with “no lockfile found”.' })).id
    await db.ticket.update({ where: { id }, data: { status } })
  }
  const answer = { author: 'support', message: 'Which branch is it? On main it is in the folder app.' }
  await db.ticketMessage.create({ data: { id: newId('msg'), ticketId: id, ...answer, createdAt: new Date() } })
  return { ticket: id }
}

async function operator(api: TestApi, made: Make): Promise<{ other: string }> {
  const { db } = api
  const other = await api.newAccount('harbour')
  const suspended = await api.newAccount('shady')
  await api.newProject('pier', { token: other.token })
  await made(
    '/tickets',
    { subject: 'May I have more build minutes?', message: 'Please.', priority: 'urgent' },
    other.token,
  )
  const desk = (await createAccount(db, 'support desk', ['operator'])).token
  const reason = 'Sends spam'
  await api.call('PATCH', `/operator/accounts/${suspended.accountId}`, {
    token: desk,
    body: { suspended: true, reason },
  })
  const { id: project } = await db.project.findFirstOrThrow({ where: { name: 'pier' } })
  await made('/operator/takedowns', { project, reason: 'Phishing, reported by the bank' }, desk)
  const ended = await made('/operator/takedowns', { host: 'docs.acme.test', reason: 'Malware' }, desk)
  await api.call('DELETE', `/operator/takedowns/${ended.id}`, { token: desk })
  const work = { api: { requests: 3 }, worker: { jobs: 2 }, edge: {}, nameserver: {}, runner: { servers: 4 } }
  const nodes = [
    ['web-1', ['api', 'worker'], { ...work.api, ...work.worker }, 0.41, false],
    ['web-1', ['edge', 'nameserver'], work.edge, 0.22, false],
    ['web-2', ['api', 'worker'], work.api, 0.05, true],
    ['run-1', ['runner'], work.runner, 1.31, false],
  ] as const
  for (const [name, roles, under, cpu, draining] of nodes) {
    const load = { cpu, memoryBytes: 150_000_000 + cpu * 90_000_000, work: under }
    const row = { id: newId('nod'), name, roles: [...roles], version: '0.1.0', load, draining }
    await db.node.create({ data: { ...row, startedAt: ago(5 * dayMs) } })
  }
  const failed = { payload: {}, attempts: 7, failedAt: ago(20 * minuteMs) }
  await db.job.create({
    data: {
      ...failed,
      kind: 'mail',
      key: 'usr_01jcqk4h2m0grz5p9sc6v2x1',
      lastError: 'the mail server refused it: 554 5.7.1',
    },
  })
  await db.job.create({
    data: { ...failed, kind: 'verify', key: 'dom_01jcqk9f6q0gt27r1ve8x4z3', lastError: 'the database did not answer' },
  })
  return { other: other.accountId }
}
