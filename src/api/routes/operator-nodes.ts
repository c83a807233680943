// /operator/nodes: the processes of the installation, for the platform's own staff.
import { Named } from '../../schemas/common.ts'
import { NodeList, NodeQuery } from '../../schemas/nodes.ts'
import { listNodes } from '../../services/nodes/nodes.ts'
import { readPage, sendPage } from '../http/page.ts'
import type { RoutePlugin } from './route.ts'

export const operatorNodeRoutes: RoutePlugin = async (app, { deps }) => {
  app.get(
    '/operator/nodes',
    {
      config: { scope: 'operator', accountWide: true },
      schema: {
        operationId: 'listNodes',
        tags: ['Operator'],
        summary: 'List the nodes of the installation',
        description:
          'Every process with its roles, version, load and last heartbeat, newest first. `berth drain <node>` asks one ' +
          'to drain.',
        querystring: NodeQuery,
        response: { 200: Named(NodeList) },
      },
    },
    async (request, reply) => {
      const page = readPage(request.query, 'nodes')
      return sendPage(request, reply, page, { nodes: await listNodes(deps.db, page) })
    },
  )
}
