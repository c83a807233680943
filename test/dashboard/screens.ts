// Every screen of the console, with something to show: what each of them is held to is in screens.test.ts.
import { newId } from '../../src/platform/ids.ts'
import { createAccount } from '../../src/services/accounts/accounts.ts'
import { createDeployment } from '../../src/services/deployments/deployments.ts'
import type { Actor } from '../../src/services/identity/actor.ts'
import type { TestApi } from '../helpers/api.ts'

/** Ids of what was made, for addresses. */
export type World = Record<'ready' | 'failed' | 'webhook' | 'ticket' | 'token' | 'account', string>

export type ScreenCase = {
  path: string
  /** Its heading. */
  heading: string | RegExp
  /** Also shown on a telephone without anything sticking out; true unless said otherwise. */
  narrow?: boolean
}

export const screens = (world: World): ScreenCase[] => [
  { path: '/', heading: 'Projects' },
  { path: '/projects/docs', heading: /docs|Project/ },
  { path: '/projects/docs/deployments', heading: /docs|Project/ },
  { path: '/projects/docs/branches', heading: /docs|Project/ },
  { path: '/projects/docs/traffic', heading: /docs|Project/ },
  { path: '/projects/docs/settings', heading: /docs|Project/ },
  { path: '/projects/docs/variables', heading: /docs|Project/ },
  { path: '/projects/docs/hook', heading: /docs|Project/ },
  { path: '/deployments', heading: 'Deployments' },
  { path: `/deployments/${world.ready}`, heading: /./ },
  { path: `/deployments/${world.failed}`, heading: /./ },
  { path: '/domains', heading: 'Domains' },
  { path: '/domains/shop.example.com', heading: /shop\.example\.com|Domain/ },
  { path: '/dns', heading: 'DNS' },
  { path: '/dns/shop.example.com', heading: /shop\.example\.com|Zone/ },
  { path: '/events', heading: 'Events' },
  { path: '/webhooks', heading: 'Webhooks' },
  { path: `/webhooks/${world.webhook}`, heading: /./ },
  { path: '/tokens', heading: 'Tokens' },
  { path: `/tokens/${world.token}`, heading: /./ },
  { path: '/tickets', heading: 'Tickets' },
  { path: `/tickets/${world.ticket}`, heading: /./ },
  { path: '/members', heading: 'Members' },
  { path: '/account', heading: /Account|./ },
  { path: '/device', heading: 'Sign in a program' },
  { path: '/me', heading: /./ },
  { path: '/operator', heading: /./ },
  { path: '/operator/tickets', heading: 'Operator' },
  { path: `/operator/tickets/${world.ticket}`, heading: /./ },
  { path: '/operator/accounts', heading: /./ },
  { path: `/operator/accounts/${world.account}`, heading: /./ },
  { path: '/operator/nodes', heading: /./ },
  { path: '/operator/jobs', heading: /./ },
  { path: '/operator/takedowns', heading: /./ },
]

/** Markup in every field that takes free text: none of it may ever run. */
export const hostile = `"><img src=x onerror=alert(1)><script>alert(2)</script>`

export async function seed(api: TestApi): Promise<World> {
  const made = async (path: string, body: object) => {
    const answer = await api.call('POST', path, { body })
    if (answer.status >= 300) throw new Error(`${path}: ${answer.text}`)
    return answer.body
  }
  const docs = await api.newProject('docs')
  const gateway = await api.newProject('api-gateway')
  const hello = await api.newProject('hello')
  const actor: Actor = { accountId: api.accountId, tokenId: 'system', scopes: [], projectIds: null }
  const deploy = async (project: typeof docs, commit: string, end: object) => {
    const plan = { project, ref: 'main', commit, region: 'local-1', source: 'api', production: true } as const
    const { id } = await createDeployment(api.db, api.deps.urls, actor, plan)
    await api.db.job.deleteMany({ where: { key: id } })
    await api.db.deployment.update({ where: { id }, data: { startedAt: new Date(), finishedAt: new Date(), ...end } })
    return id
  }
  const ready = await deploy(docs, 'a'.repeat(40), { state: 'READY', readyAt: new Date() })
  await api.db.project.update({ where: { id: docs.id }, data: { currentDeploymentId: ready } })
  const failed = await deploy(gateway, 'c01d5e7'.padEnd(40, '0'), {
    state: 'ERROR',
    errorCode: 'build_failed',
    errorMessage: `npm run build ended with 1. ${hostile}`,
  })
  await made('/domains', { name: 'shop.example.com', project: 'docs' })
  await made('/dns/shop.example.com/records', { type: 'TXT', name: '@', value: 'a text <b>with</b> marks' })
  const webhook = await made('/webhooks', { url: 'https://hooks.example.com/berth', events: ['deployment.*'] })
  const token = await made('/tokens', { name: hostile.slice(0, 60), scopes: ['projects:read'] })
  const ticket = await made('/tickets', { subject: hostile, message: hostile, priority: 'normal' })
  await api.call('PUT', '/projects/docs/env/GREETING', { body: { value: hostile, readable: true } })
  await made('/projects/docs/hook', {})
  await operate(api, hello.id)
  return { ready, failed, webhook: webhook.id, ticket: ticket.id, token: token.id, account: api.accountId }
}

/** What the operator sees: a node, a job that was given up, a takedown. */
async function operate({ db, call }: TestApi, project: string): Promise<void> {
  const load = { cpu: 0.1, memoryBytes: 100_000_000, work: { jobs: 1 } }
  await db.node.create({ data: { id: newId('nod'), name: hostile, roles: ['worker'], version: '1', load } })
  const failed = { attempts: 5, lastError: hostile, failedAt: new Date() }
  await db.job.create({ data: { kind: 'verify', key: hostile, payload: {}, ...failed } })
  const { token } = await createAccount(db, 'the desk', ['operator'])
  await call('POST', '/operator/takedowns', { token, body: { project, reason: hostile } })
}
