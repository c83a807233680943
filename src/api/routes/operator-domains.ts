// /operator/domains: disputes about domain names, settled by the operator.
import { Named } from '../../schemas/common.ts'
import { DomainParams } from '../../schemas/domains.ts'
import { AssignDomain, OperatorDomain } from '../../schemas/operator-domains.ts'
import { assignDomain } from '../../services/domains/index.ts'
import type { RoutePlugin } from './route.ts'

export const operatorDomainRoutes: RoutePlugin = async (app, { deps, once }) => {
  app.post(
    '/operator/domains/:name/assign',
    {
      config: { scope: 'operator', accountWide: true },
      schema: {
        operationId: 'assignDomain',
        tags: ['Operator'],
        summary: 'Settle whose a domain is',
        description:
          'Verifies the claim of the account, which must have added the domain, whatever the DNS says; `method` is then ' +
          '`operator` until a check finds a proof. All other claims to the name end, verified or not, and a hold on it ' +
          'is lifted. Every account concerned gets an event.',
        params: DomainParams,
        body: AssignDomain,
        response: { 200: Named(OperatorDomain) },
      },
    },
    (request, reply) =>
      once(request, reply, {
        status: 200,
        work: (db) => assignDomain(db, deps.config, request.actor, { path: request.params.name, input: request.body }),
      }),
  )
}
