// /dns/{domain}/discover: what the domain's current nameservers have that its zone here lacks.
import { Named } from '../../schemas/common.ts'
import { Discovery } from '../../schemas/discovery.ts'
import { ZoneParams } from '../../schemas/dns-records.ts'
import { compareDiscovered, discoverZone } from '../../services/dns/index.ts'
import type { RoutePlugin } from './route.ts'

export const discoveryRoutes: RoutePlugin = async (app, { deps, once }) => {
  app.post(
    '/dns/:domain/discover',
    {
      config: { scope: 'dns:write', faults: ['discovery_in_progress'] },
      schema: {
        operationId: 'discoverZone',
        tags: ['DNS'],
        summary: 'Find what the zone lacks',
        description:
          'Asks the present nameservers of the domain for what they have: by a transfer where they allow it, else for ' +
          'the names that zones commonly have, the keys of mail senders, services, and what SPF, MX and SRV records lead ' +
          'to. `changes` is what the zone here lacks, as the body of `POST /dns/{domain}/records/batch`. Nothing is ' +
          'changed. It takes some seconds, 30 at most. An account discovers one domain at a time.',
        params: ZoneParams,
        response: { 200: Named(Discovery) },
      },
    },
    (request, reply) => {
      const { actor } = request
      const { domain } = request.params
      return once(request, reply, {
        status: 200,
        prepare: () => discoverZone(deps.db, actor, domain, deps.discover),
        work: (db, found) => compareDiscovered(db, actor, domain, found),
      })
    },
  )
}
