// Support tickets and their messages.
import { Type } from '@sinclair/typebox'
import { AnyOf, Body, Choice, ListOf, ListQuery, Nullable, Timestamp, timeQuery } from './common.ts'

export const ticketStatuses = ['OPEN', 'IN_PROGRESS', 'WAITING', 'RESOLVED', 'CLOSED'] as const
export const ticketPriorities = ['low', 'normal', 'high', 'urgent'] as const
export const messageAuthors = ['customer', 'support'] as const

export const ticketExample = {
  id: 'tkt_01jcqk8d4n0hw2v6b9ym3rte',
  subject: 'The build cannot find my lockfile',
  status: 'OPEN',
  priority: 'normal',
  createdAt: '2026-11-14T09:40:00.000Z',
  updatedAt: '2026-11-14T09:40:00.000Z',
  related: 'dpl_01jcqk6a2m0gqy4n8rb5t1wz',
}

export const Ticket = Type.Object(
  {
    id: Type.String({ description: 'tkt_…' }),
    subject: Type.String(),
    status: Choice(ticketStatuses),
    priority: Choice(ticketPriorities),
    createdAt: Timestamp,
    updatedAt: Timestamp,
    related: Nullable(Type.String({ description: 'What it is about: a deployment, a domain or a request id' })),
  },
  { $id: 'Ticket', description: 'A support ticket; its text is in its messages', examples: [ticketExample] },
)

export const TicketMessage = Type.Object(
  {
    id: Type.String({ description: 'msg_…' }),
    author: Choice(messageAuthors),
    message: Type.String(),
    createdAt: Timestamp,
  },
  {
    $id: 'TicketMessage',
    description: 'One message of the conversation on a ticket',
    examples: [
      {
        id: 'msg_01jcqk8d4n0hx7c5e1kq8sza',
        author: 'customer',
        message: 'The install step ends with “no lockfile found”, but there is one in the repository.',
        createdAt: '2026-11-14T09:40:00.000Z',
      },
    ],
  },
)

// Blank text is refused instead of trimmed: what is stored is what was sent.
const Message = Type.String({
  minLength: 1,
  maxLength: 20_000,
  pattern: '\\S',
  description: 'must be 1 to 20,000 characters, not only spaces',
})

export const CreateTicket = Body(
  {
    subject: Type.String({
      minLength: 1,
      maxLength: 200,
      pattern: '^(?=.*\\S)[^\\u0000-\\u001f\\u007f\\u2028\\u2029]+$',
      description: 'must be one line of 1 to 200 characters, not only spaces',
    }),
    message: Message,
    priority: Type.Optional(Choice(ticketPriorities, { default: 'normal' })),
    related: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 253,
        description: 'Id of a deployment (dpl_…), name of an attached domain, or a request id',
      }),
    ),
  },
  {
    $id: 'CreateTicket',
    examples: [
      {
        subject: 'The build cannot find my lockfile',
        priority: 'normal',
        message: 'The install step ends with “no lockfile found”, but there is one in the repository.',
        related: 'dpl_01jcqk6a2m0gqy4n8rb5t1wz',
      },
    ],
  },
)

export const ChangeTicket = Body(
  {
    priority: Type.Optional(Choice(ticketPriorities)),
    status: Type.Optional(Choice(['CLOSED'] as const, { description: 'Closes the ticket for good' })),
  },
  { $id: 'ChangeTicket', minProperties: 1, examples: [{ priority: 'high' }, { status: 'CLOSED' }] },
)

export const ReplyToTicket = Body(
  { message: Message },
  { $id: 'CreateTicketMessage', examples: [{ message: 'It is there now, thank you.' }] },
)

export const TicketParams = Type.Object({ id: Type.String({ description: 'tkt_…' }) })

export const TicketList = ListOf('tickets', Ticket)

export const TicketMessageList = ListOf('messages', TicketMessage)

export const TicketQuery = ListQuery({
  ...timeQuery,
  status: Type.Optional(AnyOf(Choice(ticketStatuses), 'Only those of these statuses')),
  priority: Type.Optional(AnyOf(Choice(ticketPriorities), 'Only those of these priorities')),
  search: Type.Optional(
    Type.String({ minLength: 1, maxLength: 100, description: 'Words of the subject, each as far as it is known' }),
  ),
})

export const TicketMessageQuery = ListQuery({})
