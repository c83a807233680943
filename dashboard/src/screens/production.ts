// The newest ready production deployments of a project.
import { call, useQuery } from '../kit/index.ts'

export function useProduction(project: string) {
  const query = { project: [project], production: true, state: ['READY' as const], limit: 20 }
  return useQuery(call('get', '/deployments', { params: { query } }), {
    on: ['deployment.*'],
    when: ({ data }) => data.project === project,
  })
}
