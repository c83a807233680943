// /tickets: list, create, read, change, and the messages, as the customer sees them.

import { Named } from '../../schemas/common.ts'
import {
  ChangeTicket,
  CreateTicket,
  ReplyToTicket,
  Ticket,
  TicketList,
  TicketMessage,
  TicketMessageList,
  TicketMessageQuery,
  TicketParams,
  TicketQuery,
} from '../../schemas/tickets.ts'
import {
  asCustomer,
  changeTicket,
  checkRelated,
  createTicket,
  getTicket,
  listMessages,
  listTickets,
  replyToTicket,
  transitionsOf,
} from '../../services/tickets/index.ts'
import { precondition, sendSingle } from '../http/responses/etag.ts'
import { readPage, sendPage } from '../http/responses/page.ts'
import type { RoutePlugin, SoundBody } from './route.ts'

export const ticketRoutes: RoutePlugin = async (app, { deps, once }) => {
  const { db } = deps

  app.post(
    '/tickets',
    {
      config: {
        scope: 'tickets:write',
        accountWide: true,
        meaning: ({ actor }, { related }: SoundBody<typeof CreateTicket>) =>
          related === undefined ? null : checkRelated(db, actor, related),
      },
      schema: {
        operationId: 'createTicket',
        tags: ['Tickets'],
        summary: 'Open a ticket',
        description: 'The message becomes the first of the conversation; it is not part of the ticket itself.',
        body: CreateTicket,
        response: { 201: Named(Ticket) },
      },
    },
    (request, reply) =>
      once(request, reply, {
        status: 201,
        work: (db) => createTicket(db, request.actor, request.body),
        location: (ticket) => `/tickets/${ticket.id}`,
      }),
  )

  app.get(
    '/tickets',
    {
      config: { scope: 'tickets:read', accountWide: true },
      schema: {
        operationId: 'listTickets',
        tags: ['Tickets'],
        summary: 'List tickets',
        description: 'The tickets of the account, newest first.',
        querystring: TicketQuery,
        response: { 200: Named(TicketList) },
      },
    },
    async (request, reply) => {
      const page = readPage(request.query, 'tickets')
      const tickets = await listTickets(db, asCustomer(request.actor), request.query, page)
      return sendPage(request, reply, page, { tickets })
    },
  )

  app.get(
    '/tickets/:id',
    {
      config: { scope: 'tickets:read', accountWide: true },
      schema: {
        operationId: 'getTicket',
        tags: ['Tickets'],
        summary: 'Read a ticket',
        description: 'Status, priority and what it is about.',
        params: TicketParams,
        response: { 200: Named(Ticket) },
      },
    },
    async (request, reply) =>
      sendSingle(request, reply, await getTicket(db, asCustomer(request.actor), request.params.id)),
  )

  app.patch(
    '/tickets/:id',
    {
      config: { scope: 'tickets:write', accountWide: true, faults: ['ticket_closed', 'invalid_transition'] },
      schema: {
        operationId: 'changeTicket',
        tags: ['Tickets'],
        summary: 'Change a ticket',
        description: 'Changes the priority, or closes the ticket for good. A CLOSED ticket cannot be changed.',
        params: TicketParams,
        body: ChangeTicket,
        response: { 200: Named(Ticket) },
      },
    },
    async (request, reply) => {
      const { actor, params, body } = request
      return sendSingle(
        request,
        reply,
        await changeTicket(db, asCustomer(actor), params.id, { input: body, precondition: precondition(request) }),
      )
    },
  )

  app.get(
    '/tickets/:id/messages',
    {
      config: { scope: 'tickets:read', accountWide: true },
      schema: {
        operationId: 'listTicketMessages',
        tags: ['Tickets'],
        summary: 'Read the conversation',
        description: 'The messages of both sides, newest first; `order=asc` reads it from the beginning.',
        params: TicketParams,
        querystring: TicketMessageQuery,
        response: { 200: Named(TicketMessageList) },
      },
    },
    async (request, reply) => {
      const page = readPage(request.query, 'messages')
      const messages = await listMessages(db, asCustomer(request.actor), request.params.id, page)
      return sendPage(request, reply, page, { messages })
    },
  )

  app.post(
    '/tickets/:id/messages',
    {
      config: { scope: 'tickets:write', accountWide: true, faults: ['ticket_closed'] },
      schema: {
        operationId: 'replyToTicket',
        tags: ['Tickets'],
        summary: 'Reply',
        description: `Adds a message. It reopens a ticket: ${transitionsOf('customer', 'replies')}.`,
        params: TicketParams,
        body: ReplyToTicket,
        response: { 201: Named(TicketMessage) },
      },
    },
    (request, reply) =>
      once(request, reply, {
        status: 201,
        work: (db) => replyToTicket(db, asCustomer(request.actor), request.params.id, request.body.message),
        location: () => `/tickets/${request.params.id}/messages`,
        shown: () => null,
      }),
  )
}
