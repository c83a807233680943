// Real resources for the parameters of a path and valid bodies for the operations, made through the API itself.

import { createHash } from 'node:crypto'
import { tarEnd, tarHeader, tarPadding } from '../../src/platform/files/tar.ts'
import { newId } from '../../src/platform/ids.ts'
import { createAccount } from '../../src/services/accounts/accounts.ts'
import { finishDeployment } from '../../src/services/deployments/states.ts'
import { createZoneKey } from '../../src/services/dns/dnssec/zone-keys.ts'
import { addMember } from '../../src/services/people/memberships.ts'
import { createUser } from '../../src/services/people/users.ts'
import { lineOfCron, writeCrons } from '../../src/services/projects/crons.ts'
import type { Answer, TestApi } from '../helpers/api.ts'
import type { Operation } from './operations.ts'

export type Owner = { accountId: string; token: string; project: string }

/** A path with real values, those values by collection, and a body that the operation accepts. */
export type Target = { owner: Owner; path: string; values: string[]; body: unknown }

type Context = {
  owner: Owner
  operation: Operation
  /** Values of the parameters to the left. */
  values: string[]
  post(path: string, body: unknown): Promise<Answer['body']>
  put(path: string, body: unknown): Promise<Answer['body']>
  api: TestApi
}

let serial = 0
// No name is part of another one, which a search would find too.
const unique = (prefix: string) => `${prefix}-${String(++serial).padStart(4, '0')}`

const sharedRepository = 'test/shared'
// The one of the example.
const forkCommit = '4f2a9c1d0e5b6a7988c7d6e5f4a3b2c1d0e9f8a7'

async function makeDomain({ owner, post, operation, api }: Context): Promise<string> {
  const { name } = await post('/domains', { project: owner.project, name: `${unique('d')}.example.test` })
  if (operation.id === 'rollOverDnssec') await signZone(api, name)
  return name
}

/** Only a zone whose DS is at its parent has its key rolled over. */
async function signZone({ db, deps }: TestApi, name: string): Promise<void> {
  const { id } = await db.domain.findFirstOrThrow({ where: { name } })
  const use = { published: true, signing: true, announced: true }
  await db.zoneKey.create({ data: createZoneKey(deps.vault, id, use) })
  await db.domain.update({ where: { id }, data: { dnssec: true, dnssecState: 'active' } })
}

async function makeProjectId({ post }: Context): Promise<string> {
  return (await post('/projects', { name: unique('p'), repo: sharedRepository })).id
}

const sha256 = (content: string) => createHash('sha256').update(content).digest('hex')

/** What can be rolled back, or is pinned already. */
async function deployTwice({ api, operation, post }: Context, project: string): Promise<void> {
  const ids: string[] = []
  for (let count = 0; count < 2; count++) {
    const { id } = await post('/deployments', { project, production: true })
    await finishDeployment(api.db, api.deps.urls, id, { to: 'READY', by: 'system' })
    ids.push(id)
  }
  if (operation.id === 'deletePin') await post(`/deployments/${ids[0]}/promote`, { pin: true })
}

/** How to make what stands behind a path parameter, by the word before it in the path. */
const makers: Record<string, (context: Context) => Promise<string>> = {
  projects: async (context) => {
    const { operation, post, put } = context
    const { name } = await post('/projects', { name: unique('p'), repo: sharedRepository })
    // What is below the hook needs one, and what is deleted must be there.
    if (/\/hook(\/|$)/.test(operation.template) && operation.id !== 'createPushHook') {
      await post(`/projects/${name}/hook`, undefined)
      await put(`/projects/${name}/hook/status`, { provider: 'github', token: 'x' })
    }
    if (operation.template.endsWith('/repository-access')) {
      await put(`/projects/${name}/repository-access`, { kind: 'deploy_key' })
    }
    if (operation.template.endsWith('/oidc')) {
      await put(`/projects/${name}/oidc`, { issuer: 'https://issuer.example', claims: { repository: 'me/site' } })
    }
    if (operation.id === 'deletePin' || operation.id === 'rollBackProject') await deployTwice(context, name)
    return name
  },
  'deploy-hooks': async ({ values, post }) =>
    (await post(`/projects/${values[0]}/deploy-hooks`, { name: unique('hook') })).id,
  crons: async ({ api, values }) => {
    const crons = [{ path: '/', schedule: '0 3 * * *' }]
    const [project] = await api.db.project.findMany({ where: { name: values[0]! } })
    await api.db.project.update({ where: { id: project!.id }, data: { crons: crons.map(lineOfCron) } })
    await writeCrons(api.db, project!.id, crons)
    return (await api.db.cron.findFirstOrThrow({ where: { projectId: project!.id } })).id
  },
  env: async ({ values, put }) => (await put(`/projects/${values[0]}/env/API_KEY`, { value: 'x' })).key,
  deployments: async ({ api, owner, operation, post }) => {
    const { id } = await post('/deployments', { project: owner.project })
    // Only a build that is under way can be canceled; everything else takes a finished one.
    if (operation.id !== 'cancelDeployment')
      await finishDeployment(api.db, api.deps.urls, id, { to: 'READY', by: 'system' })
    // Links are made for protected previews alone.
    const shared = { where: { deployments: { some: { id } } }, data: { previewProtection: 'link' } }
    if (operation.id === 'shareDeployment') await api.db.project.updateMany(shared)
    return id
  },
  uploads: async ({ api, owner, operation }) => {
    // The content of the example.
    if (operation.id === 'putUpload') return sha256('test')
    const content = unique('content')
    const headers = { 'content-type': 'application/octet-stream' }
    const body = Buffer.from(content)
    await api.call('PUT', `/uploads/${sha256(content)}`, { token: owner.token, headers, body })
    return sha256(content)
  },
  domains: makeDomain,
  dns: async (context) => {
    const name = await makeDomain(context)
    if (context.operation.template.endsWith('/secondary')) {
      await context.put(`/dns/${name}/secondary`, { primary: '192.0.2.1' })
    }
    return name
  },
  records: async ({ values, post }) =>
    (await post(`/dns/${values[0]}/records`, { type: 'TXT', name: unique('r'), value: 'hello' })).id,
  rrsets: async ({ values, post }) =>
    (await post(`/dns/${values[0]}/records`, { type: 'TXT', name: unique('r'), value: 'hello' })).name,
  // The type, behind the name of a set.
  '{name}': async () => 'TXT',
  'pull-requests': async ({ api, values }) => {
    const project = await api.db.project.findFirstOrThrow({ where: { name: values[0]! } })
    const at = new Date()
    const row = {
      number: ++serial,
      ref: 'refs/pull/7/head',
      title: 'x',
      branch: 'x',
      commit: forkCommit,
      state: 'OPEN',
    }
    const times = { createdAt: at, updatedAt: at }
    await api.db.pullRequest.create({ data: { ...row, ...times, projectId: project.id, fromFork: true } })
    return String(row.number)
  },
  keys: async ({ values, post }) => (await post(`/dns/${values[0]}/keys`, { name: unique('k') })).id,
  tickets: async ({ post }) => (await post('/tickets', { subject: 'a question', message: 'an answer?' })).id,
  members: async ({ api, owner }) => {
    const accountId = owner.accountId
    return api.db.$transaction(async (db) => {
      const user = await createUser(db, { email: `${unique('person')}@example.com` })
      return (await addMember(db, { accountId, user, role: 'viewer', projectIds: [] })).id
    })
  },
  invitations: async ({ post }) =>
    (await post('/members/invitations', { email: `${unique('guest')}@example.com`, role: 'viewer' })).id,
  tokens: async ({ post }) => (await post('/tokens', { name: 'other', scopes: ['tokens:read'] })).id,
  webhooks: async ({ post }) => (await post('/webhooks', { url: 'https://hooks.example.com/x', events: ['*'] })).id,
  deliveries: async ({ values, post }) => (await post(`/webhooks/${values[0]}/ping`, undefined)).id,
  nodes: async ({ api }) => {
    const load = { cpu: 0, memoryBytes: 1, work: {} }
    const row = { id: newId('nod'), name: unique('node'), roles: ['worker'], version: '1', load }
    return (await api.db.node.create({ data: row })).id
  },
  jobs: async ({ api }) =>
    String((await api.db.job.create({ data: { kind: 'reap', payload: {}, failedAt: new Date() } })).id),
  accounts: async ({ post }) => (await post('/operator/accounts', { name: unique('customer') })).id,
  takedowns: async (context) =>
    (await context.post('/operator/takedowns', { project: await makeProjectId(context), reason: 'reported' })).id,
}

function archiveOf(path: string, content: string): string {
  const size = content.length
  const head = tarHeader({ kind: 'file', path, mode: 0o644, size })
  return Buffer.concat([head, Buffer.from(content), tarPadding(size), tarEnd]).toString()
}

/** Where the example of a body names things of a world that is not this one. */
const bodies: Record<string, (context: Context, example: never) => Promise<unknown>> = {
  createProject: async (_context, example: object) => ({ ...example, name: unique('p') }),
  createDeployment: async ({ owner }, example: object) => ({ ...example, project: owner.project }),
  createDeploymentFromArchive: async () => archiveOf('index.html', unique('content')),
  createUploads: async () => {
    const content = unique('content')
    return archiveOf(sha256(content), content)
  },
  createDomain: async ({ owner }) => ({ project: owner.project, name: `${unique('d')}.example.test` }),
  changeDomain: async ({ owner }) => ({ project: owner.project }),
  createTicket: async (_context, example: object) => ({ ...example, related: 'req_7m2k9xq4tb' }),
  createToken: async ({ owner }) => ({ name: 'ci', scopes: ['tokens:read'], projects: [owner.project] }),
  // The example resolves a ticket that is being worked on; a new one is OPEN.
  changeTicketAsSupport: async () => ({ status: 'IN_PROGRESS', priority: 'high' }),
  changeDnsRecords: async (context, example: object) => {
    const [gone, changed] = [await makers.records!(context), await makers.records!(context)]
    return { ...example, delete: [gone], update: [{ id: changed, ttl: 60 }] }
  },
  createDnsKey: async (_context, example: object) => ({ ...example, name: unique('k') }),
  createAccount: async () => ({ name: unique('customer') }),
  createTakedown: async (context, example: object) => ({
    ...example,
    host: undefined,
    project: await makeProjectId(context),
  }),
  rollBackProject: async () => ({}),
  assignDomain: async ({ owner }, example: object) => ({ ...example, account: owner.accountId }),
}

export type World = {
  newOwner(): Promise<Owner>
  /** Fresh resources of the owner for the parameters of the operation, and a valid body. */
  targetOf(operation: Operation, owner?: Owner): Promise<Target>
}

export async function createWorld(api: TestApi): Promise<World> {
  await api.newProject('shared')

  async function newOwner(): Promise<Owner> {
    const { account, token } = await createAccount(api.db, unique('owner'), ['*', 'operator'])
    const made = await api.call('POST', '/projects', { token, body: { name: unique('p'), repo: sharedRepository } })
    return { accountId: account.id, token, project: made.body.name }
  }

  return {
    newOwner,
    async targetOf(operation, owner) {
      const maker = owner ?? (await newOwner())
      const make = (method: string) => async (path: string, body: unknown) => {
        const made = await api.call(method, path, { token: maker.token, body })
        if (made.status >= 300) throw new Error(`${method} ${path} made nothing: ${made.text}`)
        return made.body
      }
      const values: string[] = []
      const context = { owner: maker, operation, values, post: make('POST'), put: make('PUT'), api }
      const segments = operation.template.split('/')
      for (const [index, segment] of segments.entries()) {
        if (!segment.startsWith('{')) continue
        const known = makers[segments[index - 1]!]
        if (!known) throw new Error(`world.ts cannot make what ${segment} of ${operation.name} stands for`)
        values.push(await known(context))
      }
      const path = pathOf(operation, values).replace('project=text', `project=${maker.project}`)
      return { owner: maker, path, values, body: await bodyOf(context) }
    },
  }
}

async function bodyOf(context: Context): Promise<unknown> {
  const { operation } = context
  if (!operation.body) return undefined
  const [example] = operation.body.examples
  if (example === undefined) throw new Error(`${operation.name} has no example of its body`)
  return (await bodies[operation.id]?.(context, example as never)) ?? example
}

export function pathOf(operation: Operation, values: readonly string[]): string {
  let index = 0
  const path = operation.template.replace(/\{[^}]+\}/g, () => encodeURIComponent(values[index++] ?? ''))
  const needed = operation.query.filter(({ required }) => required).map(({ name }) => `${name}=text`)
  return needed.length > 0 ? `${path}?${needed.join('&')}` : path
}

/** The body as it goes over the wire. */
export function wireOf(operation: Operation, body: unknown): { payload?: string; headers: Record<string, string> } {
  if (!operation.body) return { headers: {} }
  const payload = typeof body === 'string' ? body : JSON.stringify(body)
  return { payload, headers: { 'content-type': operation.body.type } }
}
