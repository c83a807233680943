// /operator/tickets: the tickets of all accounts, for support.
import { Named } from '../../schemas/common.ts'
import { ChangeTicketAsSupport, OperatorTicket, OperatorTicketList } from '../../schemas/operator.ts'
import {
  ReplyToTicket,
  TicketMessage,
  TicketMessageList,
  TicketMessageQuery,
  TicketParams,
  TicketQuery,
} from '../../schemas/tickets.ts'
import {
  asSupport,
  changeTicket,
  getTicket,
  listMessages,
  listTickets,
  replyToTicket,
  transitionsOf,
} from '../../services/tickets/index.ts'
import { precondition, sendSingle } from '../http/responses/etag.ts'
import { readPage, sendPage } from '../http/responses/page.ts'
import type { RoutePlugin } from './route.ts'

const access = { scope: 'operator', accountWide: true } as const

export const operatorTicketRoutes: RoutePlugin = async (app, { deps, once }) => {
  const { db } = deps

  app.get(
    '/operator/tickets',
    {
      config: access,
      schema: {
        operationId: 'listAllTickets',
        tags: ['Operator'],
        summary: 'List the tickets of all accounts',
        description: 'Every ticket with the account that opened it, newest first.',
        querystring: TicketQuery,
        response: { 200: Named(OperatorTicketList) },
      },
    },
    async (request, reply) => {
      const page = readPage(request.query, 'tickets')
      const tickets = await listTickets(db, asSupport(request.actor), request.query, page)
      return sendPage(request, reply, page, { tickets })
    },
  )

  app.get(
    '/operator/tickets/:id',
    {
      config: access,
      schema: {
        operationId: 'getTicketAsSupport',
        tags: ['Operator'],
        summary: 'Read a ticket of any account',
        description: 'The ticket and the account that opened it.',
        params: TicketParams,
        response: { 200: Named(OperatorTicket) },
      },
    },
    async (request, reply) =>
      sendSingle(request, reply, await getTicket(db, asSupport(request.actor), request.params.id)),
  )

  app.patch(
    '/operator/tickets/:id',
    {
      config: { ...access, faults: ['ticket_closed', 'invalid_transition'] },
      schema: {
        operationId: 'changeTicketAsSupport',
        tags: ['Operator'],
        summary: 'Change a ticket of any account',
        description: `Sets the priority or moves the ticket on: ${transitionsOf('support', 'sets it')}.`,
        params: TicketParams,
        body: ChangeTicketAsSupport,
        response: { 200: Named(OperatorTicket) },
      },
    },
    async (request, reply) => {
      const { actor, params, body } = request
      return sendSingle(
        request,
        reply,
        await changeTicket(db, asSupport(actor), params.id, { input: body, precondition: precondition(request) }),
      )
    },
  )

  app.get(
    '/operator/tickets/:id/messages',
    {
      config: access,
      schema: {
        operationId: 'listTicketMessagesAsSupport',
        tags: ['Operator'],
        summary: 'Read the conversation on a ticket of any account',
        description: 'The messages of both sides, newest first; `order=asc` reads it from the beginning.',
        params: TicketParams,
        querystring: TicketMessageQuery,
        response: { 200: Named(TicketMessageList) },
      },
    },
    async (request, reply) => {
      const page = readPage(request.query, 'messages')
      const messages = await listMessages(db, asSupport(request.actor), request.params.id, page)
      return sendPage(request, reply, page, { messages })
    },
  )

  app.post(
    '/operator/tickets/:id/messages',
    {
      config: { ...access, faults: ['ticket_closed'] },
      schema: {
        operationId: 'replyToTicketAsSupport',
        tags: ['Operator'],
        summary: 'Reply as support',
        description: `Adds a message that the customer sees. It moves a ticket: ${transitionsOf('support', 'replies')}.`,
        params: TicketParams,
        body: ReplyToTicket,
        response: { 201: Named(TicketMessage) },
      },
    },
    (request, reply) =>
      once(request, reply, {
        status: 201,
        work: (db) => replyToTicket(db, asSupport(request.actor), request.params.id, request.body.message),
        location: () => `/operator/tickets/${request.params.id}/messages`,
        shown: () => null,
      }),
  )
}
