// /traffic, /projects/{project}/traffic and /dns/{domain}/traffic: requests and queries over time.
import { Named } from '../../schemas/common.ts'
import { ZoneParams } from '../../schemas/dns-records.ts'
import { ProjectParams } from '../../schemas/projects.ts'
import { AccountTraffic, DnsTraffic, ProjectTraffic, TrafficQuery, TrafficRangeQuery } from '../../schemas/traffic.ts'
import { readAccountTraffic, readProjectTraffic, readZoneTraffic } from '../../services/traffic/index.ts'
import { sendSingle } from '../http/responses/etag.ts'
import { createTurns } from '../http/shares/turns.ts'
import type { RoutePlugin } from './route.ts'

const delay = 'Servers add what they counted each minute.'

// A wide range over many hosts reads hundreds of thousands of rows, so it never uses the connections of other routes.
const connectionGroups = ['traffic']
const maxWaiting = 10

export const trafficRoutes: RoutePlugin = async (app, { deps }) => {
  const { db } = deps
  const inTurn = createTurns('reads of traffic', maxWaiting)

  app.get(
    '/traffic',
    {
      config: { scope: 'projects:read', connectionGroups },
      schema: {
        operationId: 'getTraffic',
        tags: ['Projects'],
        summary: 'Read the traffic of all projects',
        description: `Requests and bytes of every project, and its requests in up to 168 buckets. ${delay}`,
        querystring: TrafficRangeQuery,
        response: { 200: Named(AccountTraffic) },
      },
    },
    async (request, reply) => {
      const { query, actor } = request
      return sendSingle(request, reply, await inTurn(actor.accountId, () => readAccountTraffic(db, actor, query)))
    },
  )

  app.get(
    '/projects/:project/traffic',
    {
      config: { scope: 'projects:read', connectionGroups },
      schema: {
        operationId: 'getProjectTraffic',
        tags: ['Projects'],
        summary: 'Read the traffic of a project',
        description:
          'Requests, bytes, status classes and response times at all hosts of the project, or at one, in up to 2,880 ' +
          `buckets. ${delay}`,
        params: ProjectParams,
        querystring: TrafficQuery,
        response: { 200: Named(ProjectTraffic) },
      },
    },
    async (request, reply) => {
      const { params, query, actor } = request
      const read = () => readProjectTraffic(db, actor, params.project, query)
      return sendSingle(request, reply, await inTurn(actor.accountId, read))
    },
  )

  app.get(
    '/dns/:domain/traffic',
    {
      config: { scope: 'dns:read', connectionGroups },
      schema: {
        operationId: 'getZoneTraffic',
        tags: ['DNS'],
        summary: 'Read the traffic of a zone',
        description: `Questions that the nameservers answered, by type and by code, in up to 2,880 buckets. ${delay}`,
        params: ZoneParams,
        querystring: TrafficRangeQuery,
        response: { 200: Named(DnsTraffic) },
      },
    },
    async (request, reply) => {
      const { params, query, actor } = request
      const read = () => readZoneTraffic(db, actor, params.domain, query)
      return sendSingle(request, reply, await inTurn(actor.accountId, read))
    },
  )
}
