// /operator/nodes: the processes of the installation.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Named } from '../../schemas/common.ts'
import { ChangeNode, Node, NodeList, NodeParams, NodeQuery } from '../../schemas/nodes.ts'
import { changeNode, findNode, listNodes, type NodeView, versionOfNode } from '../../services/nodes/index.ts'
import { precondition, sendLive } from '../http/responses/etag.ts'
import { readPage, sendPage } from '../http/responses/page.ts'
import type { RoutePlugin } from './route.ts'

const access = { scope: 'operator', accountWide: true } as const

export const operatorNodeRoutes: RoutePlugin = async (app, { deps }) => {
  const { db } = deps

  const show = (request: FastifyRequest, reply: FastifyReply, node: NodeView) =>
    sendLive(request, reply, node, versionOfNode(node))

  app.get(
    '/operator/nodes',
    {
      config: access,
      schema: {
        operationId: 'listNodes',
        tags: ['Operator'],
        summary: 'List the nodes of the installation',
        description: 'Every process with its roles, version, load and last heartbeat, newest first.',
        querystring: NodeQuery,
        response: { 200: Named(NodeList) },
      },
    },
    async (request, reply) => {
      const page = readPage(request.query, 'nodes')
      return sendPage(request, reply, page, { nodes: await listNodes(db, page) })
    },
  )

  app.get(
    '/operator/nodes/:id',
    {
      config: access,
      schema: {
        operationId: 'getNode',
        tags: ['Operator'],
        summary: 'Read a node',
        description: 'One process with its roles, version, load and last heartbeat.',
        params: NodeParams,
        response: { 200: Named(Node) },
      },
    },
    async (request, reply) => show(request, reply, await findNode(db, request.params.id)),
  )

  app.patch(
    '/operator/nodes/:id',
    {
      config: { ...access, faults: ['invalid_transition'] },
      schema: {
        operationId: 'changeNode',
        tags: ['Operator'],
        summary: 'Drain a node, or no longer',
        description:
          'A node that drains serves on, but is not ready and takes no new work, until it is told to take work again or ' +
          'is started anew. It hears it at once, or with its next heartbeat. One that is LOST cannot be asked.',
        params: NodeParams,
        body: ChangeNode,
        response: { 200: Named(Node) },
      },
    },
    async (request, reply) => {
      const change = { id: request.params.id, draining: request.body.draining, precondition: precondition(request) }
      return show(request, reply, await changeNode(db, change))
    },
  )
}
