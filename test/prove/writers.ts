// Tenants that write without a pause: every kind of write, one after the other, each on what is its own.
import { setTimeout as sleep } from 'node:timers/promises'
import { type Client, Refused, Unanswered } from './client.ts'
import { type Ledger, recordKey } from './ledger.ts'

export type Writer = { run(signal: AbortSignal): Promise<void>; faults: string[] }

export type WriterOptions = {
  name: string
  client: Client
  ledger: Ledger
  random: () => number
  /** In every command of a build, so that its processes can be told from others. */
  mark: string
  receiverUrl: string
}

type Made = { id: string; state?: string; token?: string }
type Project = { id: string; name: string; deployments: string[] }

/** Tags of the repository; each has a page that tells its name. */
export const tags = ['v1', 'v2', 'v3'] as const
export const repository = 'prove/site'

const pauseMs = 50
const maxProjects = 4

export function createWriter({ name, client, ledger, random, mark, receiverUrl }: WriterOptions): Writer {
  let count = 0
  const projects: Project[] = []
  const domains: { name: string; project: string; records: Map<string, string> }[] = []
  const tickets: string[] = []
  const tokens: string[] = []
  const webhooks: string[] = []
  const variables: { project: string; key: string; target: string }[] = []
  const faults: string[] = []

  const one = <T>(list: readonly T[]): T | undefined => list[Math.floor(random() * list.length)]
  const without = <T>(list: T[], item: T) => void list.splice(list.indexOf(item), 1)
  const next = () => `${name}-${++count}`
  const post = async (path: string, body?: object) => (await client.call<Made>('POST', path, body)).body

  async function makeProject(): Promise<void> {
    if (projects.length >= maxProjects) return changeProject()
    const project = next()
    // Some are read straight from git, others are built by a command.
    const buildCommand = `mkdir -p dist && cp *.html dist/ && sleep 2 && : ${mark}`
    const settings = count % 2 === 0 ? {} : { buildCommand, outputDirectory: 'dist', buildNetwork: 'none' }
    const { id } = await post('/projects', { name: project, framework: 'static', repo: repository, settings })
    ledger.put('project', id, { name: project, repo: repository, spaFallback: null }, ['project.created', id])
    projects.push({ id, name: project, deployments: [] })
  }

  async function changeProject(): Promise<void> {
    const project = one(projects)
    if (!project) return makeProject()
    const spaFallback = random() < 0.5
    await client.call('PATCH', `/projects/${project.id}`, { settings: { spaFallback } })
    ledger.put('project', project.id, { spaFallback })
  }

  async function makeDeployment(): Promise<void> {
    const project = one(projects)
    if (!project) return makeProject()
    if (await isBuilding(project)) return makeTicket()
    const ref = one(tags)!
    const { id } = await post('/deployments', { project: project.name, ref })
    ledger.put('deployment', id, { project: project.name, ref }, ['deployment.created', id])
    project.deployments.push(id)
  }

  /** A project has one build at a time: more would wait longer than all the rest takes. */
  async function isBuilding({ deployments }: Project): Promise<boolean> {
    const last = deployments.at(-1)
    return last !== undefined && (await client.call<Made>('GET', `/deployments/${last}`)).body.state === 'BUILDING'
  }

  /** The newest that is READY, if there is one besides what serves production. */
  async function promote(): Promise<void> {
    const project = one(projects)
    if (!project) return makeProject()
    for (const id of project.deployments.toReversed()) {
      const { body } = await client.call<Made & { current: boolean }>('GET', `/deployments/${id}`)
      if (body.state !== 'READY' || body.current) continue
      await post(`/deployments/${id}/promote`)
      ledger.put('production', project.name, { current: id }, ['deployment.promoted', id])
      return
    }
  }

  async function deleteDeployment(): Promise<void> {
    const project = one(projects)
    for (const id of project?.deployments ?? []) {
      const { body } = await client.call<Made & { current: boolean }>('GET', `/deployments/${id}`)
      if (body.state === 'BUILDING' || body.current) continue
      await client.call('DELETE', `/deployments/${id}`)
      ledger.drop('deployment', id, ['deployment.deleted', id])
      return without(project!.deployments, id)
    }
  }

  async function cancel(): Promise<void> {
    const project = one(projects)
    const id = project?.deployments.at(-1)
    if (!id) return makeDeployment()
    try {
      const { state } = await post(`/deployments/${id}/cancel`)
      ledger.put('deployment', id, { state })
    } catch (error) {
      // It may have ended before.
      if (!(error instanceof Refused && error.code === 'deployment_finished')) throw error
    }
  }

  async function deleteProject(): Promise<void> {
    const project = one(projects.filter(({ name }) => !domains.some((domain) => domain.project === name)))
    if (!project || projects.length < 2) return
    // Before the request: from then on nobody knows what it has.
    without(projects, project)
    await client.call('DELETE', `/projects/${project.id}`)
    ledger.drop('project', project.id, ['project.deleted', project.id])
    for (const id of project.deployments) ledger.forget('deployment', id)
    ledger.forget('production', project.name)
    for (const variable of variables.filter((one) => one.project === project.id)) {
      ledger.forget('variable', `${project.id} ${variable.key} ${variable.target}`)
      without(variables, variable)
    }
  }

  async function makeDomain(): Promise<void> {
    const project = one(projects)
    if (!project || domains.length > 5) return makeRecord()
    const domain = `${next()}.test`
    await post('/domains', { project: project.name, name: domain })
    ledger.put('domain', domain, { project: project.name }, ['domain.created', domain])
    domains.push({ name: domain, project: project.name, records: new Map() })
  }

  async function deleteDomain(): Promise<void> {
    const domain = one(domains)
    if (!domain || domains.length < 3) return makeDomain()
    without(domains, domain)
    await client.call('DELETE', `/domains/${domain.name}`)
    ledger.drop('domain', domain.name, ['domain.deleted', domain.name])
    for (const key of domain.records.keys()) ledger.forget('record', key)
  }

  async function makeRecord(): Promise<void> {
    const domain = one(domains)
    if (!domain) return makeDomain()
    const record = { type: 'A', name: next(), value: `192.0.2.${count % 250}` }
    const { id } = await post(`/dns/${domain.name}/records`, record)
    const key = recordKey(domain.name, record)
    ledger.put('record', key, {}, ['dns.record.created', id])
    domain.records.set(key, id)
  }

  async function deleteRecord(): Promise<void> {
    const domain = one(domains)
    const [key, id] = domain ? (one([...domain.records]) ?? []) : []
    if (!domain || !key || !id) return makeRecord()
    await client.call('DELETE', `/dns/${domain.name}/records/${id}`)
    ledger.drop('record', key, ['dns.record.deleted', id])
    domain.records.delete(key)
  }

  /** Replaces all records of a zone. */
  async function importZone(): Promise<void> {
    const domain = one(domains)
    if (!domain) return makeDomain()
    const names = Array.from({ length: 20 }, next)
    await client.call(
      'PUT',
      `/dns/${domain.name}/zone`,
      `${names.map((name) => `${name} 300 IN A 192.0.2.9`).join('\n')}\n`,
    )
    for (const key of domain.records.keys()) ledger.forget('record', key)
    domain.records.clear()
    for (const name of names) {
      const key = recordKey(domain.name, { name, type: 'A', value: '192.0.2.9' })
      ledger.put('record', key, {})
      // Its id is not asked for; such a record goes with the next import.
      domain.records.set(key, '')
    }
  }

  async function makeTicket(): Promise<void> {
    const subject = next()
    const message = `first of ${subject}`
    const { id } = await post('/tickets', { subject, message })
    ledger.put('ticket', id, { subject, status: 'OPEN', priority: 'normal' }, ['ticket.created', id])
    ledger.put('message', `${id} ${message}`, {})
    tickets.push(id)
  }

  async function reply(): Promise<void> {
    const ticket = one(tickets)
    if (!ticket) return makeTicket()
    const message = next()
    await post(`/tickets/${ticket}/messages`, { message })
    ledger.put('message', `${ticket} ${message}`, {}, ['ticket.replied', ticket])
  }

  async function closeTicket(): Promise<void> {
    const ticket = one(tickets)
    if (!ticket) return makeTicket()
    without(tickets, ticket)
    await client.call('PATCH', `/tickets/${ticket}`, { status: 'CLOSED' })
    ledger.put('ticket', ticket, { status: 'CLOSED' })
  }

  async function makeToken(): Promise<void> {
    const token = next()
    const { id } = await post('/tokens', { name: token, scopes: ['dns:read'] })
    ledger.put('token', id, { name: token, scopes: ['dns:read'] }, ['token.created', id])
    tokens.push(id)
  }

  async function revokeToken(): Promise<void> {
    const token = one(tokens)
    if (!token) return makeToken()
    without(tokens, token)
    await client.call('DELETE', `/tokens/${token}`)
    ledger.drop('token', token, ['token.revoked', token])
  }

  async function makeWebhook(): Promise<void> {
    if (webhooks.length > 3) return deleteWebhook()
    const url = `${receiverUrl}${next()}`
    const { id } = await post('/webhooks', { url, events: ['token.*'] })
    ledger.put('webhook', id, { url, events: ['token.*'], active: true })
    webhooks.push(id)
  }

  async function changeWebhook(): Promise<void> {
    const webhook = one(webhooks)
    if (!webhook) return makeWebhook()
    const events = [random() < 0.5 ? 'ticket.created' : 'project.*']
    await client.call('PATCH', `/webhooks/${webhook}`, { events })
    ledger.put('webhook', webhook, { events })
  }

  async function deleteWebhook(): Promise<void> {
    const webhook = one(webhooks)
    if (!webhook) return makeWebhook()
    without(webhooks, webhook)
    await client.call('DELETE', `/webhooks/${webhook}`)
    ledger.drop('webhook', webhook)
  }

  async function putVariable(): Promise<void> {
    const project = one(projects)
    if (!project) return makeProject()
    const target = random() < 0.5 ? 'all' : 'preview'
    const variable = { project: project.id, key: `V${Math.floor(random() * 5)}`, target }
    const name = `${project.id} ${variable.key} ${target}`
    await client.call('PUT', `/projects/${project.id}/env/${variable.key}`, { value: next(), target })
    ledger.put('variable', name, { target })
    if (!variables.some(({ project, key, target }) => `${project} ${key} ${target}` === name)) variables.push(variable)
  }

  async function deleteVariable(): Promise<void> {
    const variable = one(variables)
    if (!variable) return putVariable()
    without(variables, variable)
    const { project, key, target } = variable
    await client.call('DELETE', `/projects/${project}/env/${key}?target=${target}`)
    ledger.drop('variable', `${project} ${key} ${target}`)
  }

  const makes = [makeProject, makeDeployment, makeDomain, makeRecord, makeTicket, makeToken, makeWebhook, putVariable]
  const changes = [changeProject, promote, cancel, importZone, reply, closeTicket, changeWebhook]
  const deletions = [
    deleteDeployment,
    deleteProject,
    deleteDomain,
    deleteRecord,
    revokeToken,
    deleteWebhook,
    deleteVariable,
  ]
  const every = [...makes, ...changes, ...deletions, makeDeployment, makeDeployment, makeRecord, makeTicket, reply]

  return {
    faults,
    async run(signal) {
      // Each kind once, whatever the dice say and however little time there was.
      const first = [...makes, ...changes, ...deletions]
      while (!signal.aborted || first.length > 0) {
        const write = first.shift() ?? one(every)!
        try {
          await write()
        } catch (error) {
          if (!(error instanceof Refused || error instanceof Unanswered)) throw error
          faults.push(`${write.name}: ${error.message}`)
        }
        await sleep(pauseMs, undefined, { signal }).catch(() => {})
      }
    },
  }
}
