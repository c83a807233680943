// The measurements of the group edge.
import type { Bench, Figure } from '../group.ts'

export const figures = {
  caddy: { what: 'A 10 KB file, requests per second', against: 'Caddy', needs: ['wrk', 'caddy'] },
  nginx: { what: 'A 10 KB file, requests per second', against: 'nginx with two workers', needs: ['wrk', 'nginx'] },
  workers: { what: 'The same with two workers', against: 'nginx with two workers', needs: ['wrk', 'nginx'] },
  large: { what: 'A 100 MB file, bytes per second', against: 'Caddy', needs: ['curl', 'caddy'] },
  newHost: { what: 'First byte of a new host with 10,000 deployments, time', against: 'the same with 10' },
  knownHost: { what: 'First byte of a known host with 10,000 deployments, time', against: 'the same with 10' },
  memory: { what: 'Memory with 10,000 deployments and domains, each visited', against: '–' },
} satisfies Record<string, Figure>

export type EdgeBench = Bench<keyof typeof figures>
