// /operator/takedowns: takes hosts and projects off the web, and restores them.
import { Named } from '../../schemas/common.ts'
import {
  CreateTakedown,
  OperatorTakedown,
  TakedownList,
  TakedownParams,
  TakedownQuery,
} from '../../schemas/takedowns.ts'
import {
  checkTakedown,
  createTakedown,
  endTakedown,
  getTakedown,
  listTakedowns,
} from '../../services/takedowns/index.ts'
import { precondition, sendSingle } from '../http/responses/etag.ts'
import { readPage, sendPage } from '../http/responses/page.ts'
import { NoContent, type RoutePlugin, type SoundBody } from './route.ts'

const access = { scope: 'operator', accountWide: true } as const

export const operatorTakedownRoutes: RoutePlugin = async (app, { deps, once }) => {
  const { db, urls } = deps

  app.post(
    '/operator/takedowns',
    {
      config: {
        ...access,
        meaning: (_request: unknown, body: SoundBody<typeof CreateTakedown>) => checkTakedown(db, urls, body),
      },
      schema: {
        operationId: 'createTakedown',
        tags: ['Operator'],
        summary: 'Take a host or a project down',
        description:
          'From now on, within a second at every edge, the host, or every host of the project, answers 403 with a ' +
          'page that says nothing about the owner; the servers of a project are stopped. It is by name: a host that is ' +
          'given up and claimed again, by whomever, stays taken down. The owner is told by the event `takedown.created`. ' +
          'What is taken down already stays as it is, and is answered as it stands.',
        body: CreateTakedown,
        response: { 201: Named(OperatorTakedown) },
      },
    },
    (request, reply) =>
      once(request, reply, {
        status: 201,
        work: (db) => createTakedown(db, urls, request.actor, request.body),
        location: (takedown) => `/operator/takedowns/${takedown.id}`,
      }),
  )

  app.get(
    '/operator/takedowns',
    {
      config: access,
      schema: {
        operationId: 'listTakedowns',
        tags: ['Operator'],
        summary: 'List takedowns',
        description: 'Those that stand and those that have ended, newest first.',
        querystring: TakedownQuery,
        response: { 200: Named(TakedownList) },
      },
    },
    async (request, reply) => {
      const page = readPage(request.query, 'takedowns')
      return sendPage(request, reply, page, { takedowns: await listTakedowns(db, request.query, page) })
    },
  )

  app.get(
    '/operator/takedowns/:id',
    {
      config: access,
      schema: {
        operationId: 'getTakedown',
        tags: ['Operator'],
        summary: 'Read a takedown',
        description: 'What is taken down, why, whose it was, and whether it has ended.',
        params: TakedownParams,
        response: { 200: Named(OperatorTakedown) },
      },
    },
    async (request, reply) => sendSingle(request, reply, await getTakedown(db, request.params.id)),
  )

  app.delete(
    '/operator/takedowns/:id',
    {
      config: access,
      schema: {
        operationId: 'endTakedown',
        tags: ['Operator'],
        summary: 'End a takedown',
        description:
          'The hosts are served again within a second, and servers are started. The owner is told by the event ' +
          '`takedown.ended`. The takedown stays in the list, with `endedAt`; ending it twice changes nothing.',
        params: TakedownParams,
        response: { 204: NoContent },
      },
    },
    async (request, reply) => {
      await endTakedown(db, request.actor, request.params.id, precondition(request))
      return reply.code(204).send(null)
    },
  )
}
