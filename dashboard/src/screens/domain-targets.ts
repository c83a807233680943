// Domains of the account to which others may redirect.
import { call, type Schemas, useQuery } from '../kit/index.ts'

export function useTargets(without: string): Schemas['Domain'][] {
  const { data } = useQuery(call('get', '/domains', { params: { query: { limit: 100 } } }), { on: ['domain.*'] })
  return (data?.domains ?? []).filter(
    ({ name, redirectTo }) => name !== without && !redirectTo && !name.startsWith('*'),
  )
}
