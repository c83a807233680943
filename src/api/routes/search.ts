// /search: finds an account's resources by a few characters.
import { Named } from '../../schemas/common.ts'
import { SearchQuery, SearchResults } from '../../schemas/search.ts'
import { search } from '../../services/search/index.ts'
import { sendSingle } from '../http/responses/etag.ts'
import type { RoutePlugin } from './route.ts'

export const searchRoutes: RoutePlugin = async (app, { deps }) => {
  app.get(
    '/search',
    {
      config: { scope: null },
      schema: {
        operationId: 'search',
        tags: ['Account'],
        summary: 'Search',
        description:
          'Projects, domains, deployments and tickets of the account that fit the text, some of each. Shows what the token ' +
          'may read: `searched` names the kinds that were looked through.',
        querystring: SearchQuery,
        response: { 200: Named(SearchResults) },
      },
    },
    async (request, reply) => sendSingle(request, reply, await search(deps, request.actor, request.query)),
  )
}
