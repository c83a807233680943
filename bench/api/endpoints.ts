// The measured endpoints, with requests that never use the same new name twice.
import { encodeCursor } from '../../src/platform/database/page.ts'

export type EndpointRequest = { method: string; path: string; body?: string }

export type Endpoint = {
  name: string
  /** The table and the first ID after the seed: rows added by a slice are deleted from there. */
  adds: [table: string, prefix: string][]
  /** A request against a database of `size` rows; `serial` is different for each. */
  request(size: number, serial: number): EndpointRequest
}

/** Seeded rows are numbered; their IDs sort before all time-based IDs. */
export function seededId(prefix: string, number: number): string {
  return `${prefix}_${String(number).padStart(24, '0')}`
}

/** The zone with all seeded records; the others are empty. */
export const bigZone = 'many.test'

const pick = (size: number) => 1 + Math.floor(Math.random() * size)

function post(path: string, body: object): EndpointRequest {
  return { method: 'POST', path: `/api${path}`, body: JSON.stringify(body) }
}

const get = (path: string): EndpointRequest => ({ method: 'GET', path: `/api${path}` })

const noticed: Endpoint['adds'] = [
  ['event', 'evt'],
  ['job', ''],
]

export const endpoints: Endpoint[] = [
  {
    name: 'POST /deployments',
    adds: [['deployment', 'dpl'], ...noticed],
    request: (size) => post('/deployments', { project: `site-${pick(size)}`, ref: 'main', production: true }),
  },
  {
    name: 'POST /domains',
    adds: [['domain', 'dom'], ...noticed],
    request: (size, serial) => post('/domains', { project: `site-${pick(size)}`, name: `new-${serial}.test` }),
  },
  {
    name: 'POST /dns/{domain}/records',
    adds: [['dns_record', 'rec'], ...noticed],
    // One in eight uses the large zone, so that its size shows without every request waiting for its lock.
    request: (size, serial) =>
      post(`/dns/${serial % 8 === 0 ? bigZone : `zone-${pick(size)}.test`}/records`, {
        type: 'A',
        // Sorts before the seeded ones, so that a late request doesn't change a compared page.
        name: `added-${serial}`,
        value: '192.0.2.10',
        ttl: 3600,
      }),
  },
  { name: 'GET /projects', adds: [], request: () => get('/projects') },
  {
    name: 'POST /tickets',
    adds: [['ticket', 'tkt'], ...noticed],
    request: (_, serial) =>
      post('/tickets', {
        subject: `The build of site ${serial} cannot find my lockfile`,
        message: 'The install step ends with “no lockfile found”, but there is one in the repository.',
        priority: 'high',
      }),
  },
  {
    name: 'GET /deployments/{id}',
    adds: [],
    request: (size) => get(`/deployments/${seededId('dpl', pick(size))}`),
  },
  {
    name: 'GET /dns/{domain}/records',
    adds: [],
    request: (size) => {
      const number = pick(size)
      const cursor = encodeCursor('records', 'asc', [`host-${number}`, seededId('rec', number)])
      return get(`/dns/${bigZone}/records?limit=20&cursor=${cursor}`)
    },
  },
]
