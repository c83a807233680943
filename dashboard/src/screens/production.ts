// What a project has in production, and what it had before: the newest deployments that are ready.
import { call, useQuery } from '../kit/index.ts'

const looked = 20

export function useProduction(project: string) {
  const query = { project: [project], production: true, state: ['READY' as const], limit: looked }
  return useQuery(call('get', '/deployments', { params: { query } }), {
    on: ['deployment.*'],
    when: ({ data }) => data.project === project,
  })
}
