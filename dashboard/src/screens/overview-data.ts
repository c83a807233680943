// What the overview shows of each project, read with as few calls as there are.
import { berth, type Call, callPath, type Query, type Schemas, useQuery } from '../kit/index.ts'

type Deployment = Schemas['Deployment']
type Domain = Schemas['Domain']

export type Production = {
  /** The newest one for production, whatever became of it. */
  latest: Deployment | null
  /** The one that visitors see. */
  current: Deployment | null
  domains: Domain[]
}

const page = 100
// An account with more domains finds the rest of them on their own screen.
const maxDomains = 500

/** A call that consists of several. */
function combined<T>(key: string, send: (signal?: AbortSignal) => Promise<T>): Call<T> {
  const made: Call<T> = { key, curl: null, send, from: () => made }
  return made
}

async function readProduction(names: string[], signal?: AbortSignal): Promise<Map<string, Production>> {
  const found = new Map(names.map((name): [string, Production] => [name, { latest: null, current: null, domains: [] }]))
  const recent = await berth.get('/deployments', { params: { query: { production: true, limit: page } }, signal })
  const take = (deployment: Deployment) => {
    const project = found.get(deployment.project)
    if (!project) return
    project.latest ??= deployment
    if (deployment.current) project.current ??= deployment
  }
  recent.deployments.forEach(take)
  // What was deployed long ago is behind the first page: those projects are asked for one by one.
  const isBehind = ({ latest, current }: Production) =>
    latest === null || (current === null && latest.state !== 'BUILDING' && latest.state !== 'READY')
  const behind = recent.nextCursor === null ? [] : names.filter((name) => isBehind(found.get(name)!))
  for (const name of behind) {
    const query = { project: [name], production: true, limit: 20 }
    const { deployments } = await berth.get('/deployments', { params: { query }, signal })
    deployments.forEach(take)
  }
  return found
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
  return useQuery(names ? combined(`production ${names.join()}`, (signal) => readProduction(names, signal)) : null, {
    on: ['deployment.*'],
    when: (event) => event.data.production === true,
  })
}

export function useDomains(may: boolean): Query<Domain[]> {
  return useQuery(may ? combined('all domains', readDomains) : null, { on: ['domain.*'] })
}

export type Traffic = { buckets: { at: string; requests: number }[]; totals: { requests: number } }

const hourMs = 3_600_000

/** Of the last day, by the hour. */
export function trafficCall(project: string, nowMs: number): Call<Traffic> {
  const to = Math.floor(nowMs / hourMs + 1) * hourMs
  const query = { from: new Date(to - 24 * hourMs).toISOString(), to: new Date(to).toISOString(), step: 'hour' }
  return callPath('get', '/projects/{project}/traffic', { params: { path: { project }, query } })
}
