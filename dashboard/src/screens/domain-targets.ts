// The domains of the account that others can redirect to.
import { call, type Schemas, useQuery } from '../kit/index.ts'

export function useTargets(except: string): Schemas['Domain'][] {
  const { data } = useQuery(call('get', '/domains', { params: { query: { limit: 100 } } }), { on: ['domain.*'] })
  return (data?.domains ?? []).filter(({ name, redirectTo }) => name !== except && !redirectTo && !name.startsWith('*'))
}
