// Loads a domain and reloads it after its events and after each scheduled check.
import { useEffect } from 'preact/hooks'
import { call, now, type Schemas, useQuery } from '../kit/index.ts'

export type Domain = Schemas['Domain']

export const domainPath = (name: string) => `/domains/${encodeURIComponent(name)}`
export const zonePath = (name: string) => `/dns/${encodeURIComponent(name)}`

// A check takes a moment, and one that finds nothing sends no event.
const checkMs = 1_500
const overdueMs = 5_000

export function useDomain(name: string) {
  const query = useQuery(call('get', '/domains/{name}', { params: { path: { name } } }), {
    on: ['domain.*', 'takedown.*'],
    when: ({ subject, type }) => subject === name || type.startsWith('takedown'),
  })
  const next = query.data?.verified === false ? query.data.verification.nextCheckAt : null
  const checked = query.data?.verification.checkedAt
  useEffect(() => {
    if (!next) return
    const waitMs = Date.parse(next) - now.peek()
    // Overdue: the check is in progress or waits for a worker.
    const timer = setTimeout(query.refetch, waitMs > 0 ? waitMs + checkMs : overdueMs)
    return () => clearTimeout(timer)
  }, [next, checked, query.loading])
  return query
}

export type SetupStep = { name: string; is: 'done' | 'now' | 'failed' | 'ahead'; at: string | null }

export const isOurs = ({ nameservers, verification: { observed } }: Domain) =>
  observed.nameservers.length === nameservers.length && nameservers.every((name) => observed.nameservers.includes(name))

/** The steps of setting up a domain: Added, Delegated, Verified, Certificate. */
export function setupSteps(domain: Domain): SetupStep[] {
  const { verified, verification, ssl, certificate } = domain
  const elsewhere = verified && verification.method !== 'nameservers' && !isOurs(domain)
  const delegated = isOurs(domain) || verification.method === 'nameservers'
  return [
    { name: 'Added', is: 'done', at: domain.createdAt },
    elsewhere
      ? { name: 'DNS elsewhere', is: 'done', at: null }
      : { name: 'Delegated', is: delegated ? 'done' : verified ? 'ahead' : 'now', at: null },
    { name: 'Verified', is: verified ? 'done' : delegated ? 'now' : 'ahead', at: domain.verifiedAt },
    {
      name: 'Certificate',
      is: ssl === 'ACTIVE' ? 'done' : ssl === 'ERROR' || ssl === 'EXPIRED' ? 'failed' : verified ? 'now' : 'ahead',
      at: certificate?.notBefore ?? null,
    },
  ]
}
