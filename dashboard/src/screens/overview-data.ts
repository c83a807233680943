// Loads the overview with as few calls as possible.
import { berth, type Call, callPath, type Query, type Schemas, useQuery } from '../kit/index.ts'

type Deployment = Schemas['Deployment']
type Domain = Schemas['Domain']

export type Production = {
  /** The newest production deployment, whatever its state. */
  latest: Deployment | null
  /** The deployment that visitors see. */
  current: Deployment | null
  domains: Domain[]
}

const page = 100
// Further domains are on their own screen.
const maxDomains = 500

/** Combines several requests into one call. */
function combine<T>(key: string, send: (signal?: AbortSignal) => Promise<T>): Call<T> {
  const combined: Call<T> = { key, curl: null, send, from: () => combined }
  return combined
}

async function readProduction(names: string[], signal?: AbortSignal): Promise<Map<string, Production>> {
  const byProject = new Map(
    names.map((name): [string, Production] => [name, { latest: null, current: null, domains: [] }]),
  )
  const recent = await berth.get('/deployments', { params: { query: { production: true, limit: page } }, signal })
  const add = (deployment: Deployment) => {
    const project = byProject.get(deployment.project)
    if (!project) return
    project.latest ??= deployment
    if (deployment.current) project.current ??= deployment
  }
  recent.deployments.forEach(add)
  // Projects deployed long ago aren't on the first page: we query them one by one.
  const isMissing = ({ latest, current }: Production) =>
    latest === null || (current === null && latest.state !== 'BUILDING' && latest.state !== 'READY')
  const missing = recent.nextCursor === null ? [] : names.filter((name) => isMissing(byProject.get(name)!))
  for (const name of missing) {
    const query = { project: [name], production: true, limit: 20 }
    const { deployments } = await berth.get('/deployments', { params: { query }, signal })
    deployments.forEach(add)
  }
  return byProject
}

async function readDomains(signal?: AbortSignal): Promise<Domain[]> {
  const all: Domain[] = []
  for await (const domain of berth.list('/domains', { signal })) {
    all.push(domain)
    if (all.length >= maxDomains) break
  }
  return all
}

export function useProduction(projects: { name: string }[] | undefined): Query<Map<string, Production>> {
  const names = projects?.map(({ name }) => name)
  return useQuery(names ? combine(`production ${names.join()}`, (signal) => readProduction(names, signal)) : null, {
    on: ['deployment.*'],
    when: (event) => event.data.production === true,
  })
}

export function useDomains(may: boolean): Query<Domain[]> {
  return useQuery(may ? combine('all domains', readDomains) : null, { on: ['domain.*'] })
}

export type Traffic = { buckets: { at: string; requests: number }[]; totals: { requests: number } }

const hourMs = 3_600_000

/** The last 24 hours, by the hour. */
export function trafficCall(project: string, nowMs: number): Call<Traffic> {
  const to = Math.floor(nowMs / hourMs + 1) * hourMs
  const query = { from: new Date(to - 24 * hourMs).toISOString(), to: new Date(to).toISOString(), step: 'hour' }
  return callPath('get', '/projects/{project}/traffic', { params: { path: { project }, query } })
}
