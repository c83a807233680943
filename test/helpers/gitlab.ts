// A GitLab with one project that accepts commit statuses by GitLab's rules: token, path, and state transitions.
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'

export type GitLabStatus = { state: string; name: string; ref?: string; target_url?: string; description: string }

export type GitLab = {
  url: string
  /** The statuses sent and accepted for each commit, in order, by `<sha> <name>`. */
  taken: Map<string, GitLabStatus[]>
  /** All responses, accepted or not. */
  answered: number[]
  close(): void
}

const waiting = ['created', 'skipped', 'manual', 'scheduled']
/** The event and the allowed previous states of each state, from app/models/commit_status.rb and ci/processable.rb. */
const transitions: Record<string, { event: string; allows(from: string): boolean }> = {
  pending: { event: 'enqueue', allows: (from) => waiting.includes(from) },
  running: { event: 'run', allows: (from) => from !== 'running' },
  success: { event: 'success', allows: (from) => from !== 'success' },
  failed: { event: 'drop', allows: (from) => from !== 'failed' },
  canceled: { event: 'cancel', allows: (from) => [...waiting, 'pending', 'running'].includes(from) },
}

export async function startGitLab(project: string, token: string): Promise<GitLab> {
  const taken: GitLab['taken'] = new Map()
  const answered: number[] = []

  async function answer(request: IncomingMessage): Promise<[number, object]> {
    const sent = await request.toArray()
    if (request.headers['private-token'] !== token) return [401, { message: '401 Unauthorized' }]
    const [, id, sha] = /^\/api\/v4\/projects\/([^/]+)\/statuses\/([0-9a-f]{40})$/.exec(request.url!) ?? []
    if (request.method !== 'POST' || id === undefined) return [404, { error: '404 Not Found' }]
    if (decodeURIComponent(id) !== project) return [404, { message: '404 Project Not Found' }]
    const status: GitLabStatus = JSON.parse(Buffer.concat(sent).toString())
    const transition = transitions[status.state]
    if (!transition) return [400, { error: 'state does not have a valid value' }]
    if (status.description.length > 255) return [400, { message: { description: ['is too long'] } }]
    const key = `${sha} ${status.name}`
    const before = taken.get(key) ?? []
    const from = before.at(-1)?.state ?? 'created'
    if (!transition.allows(from)) {
      const why = `Cannot transition status via :${transition.event} from :${from}`
      return [400, { message: `${why} (Reason(s): Status cannot transition via "${transition.event}")` }]
    }
    taken.set(key, [...before, status])
    return [201, { id: before.length + 1, sha, ...status }]
  }

  const server = createServer(async (request, response) => {
    const [code, body] = await answer(request)
    response.writeHead(code, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    answered.push(code)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, taken, answered, close: () => void server.close() }
}
