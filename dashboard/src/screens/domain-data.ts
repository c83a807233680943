// A domain as its screen shows it: read again after its events, and when the next look that was announced is over.
import { useEffect } from 'preact/hooks'
import { call, now, type Schemas, useQuery } from '../kit/index.ts'

export type Domain = Schemas['Domain']

export const domainPath = (name: string) => `/domains/${encodeURIComponent(name)}`
export const zonePath = (name: string) => `/dns/${encodeURIComponent(name)}`

// A look takes a moment, and one that found nothing is no event.
const lookMs = 1_500
const patienceMs = 5_000

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
    // Overdue: the look is under way, or waits for a worker.
    const timer = setTimeout(query.refetch, waitMs > 0 ? waitMs + lookMs : patienceMs)
    return () => clearTimeout(timer)
  }, [next, checked, query.loading])
  return query
}

export type Station = { name: string; is: 'done' | 'now' | 'failed' | 'ahead'; at: string | null }

const isOurs = ({ nameservers, verification: { observed } }: Domain) =>
  observed.nameservers.length === nameservers.length && nameservers.every((name) => observed.nameservers.includes(name))

/** Where the domain is on its way: Added, Delegated, Verified, Certificate. */
export function stationsOf(domain: Domain): Station[] {
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

export { isOurs }
