// What the operator sees: accounts, and the tickets of all of them.
import { Type } from '@sinclair/typebox'
import { Body, Choice, ListOf, ListQuery, Named, Nullable, NullableNamed, Timestamp } from './common.ts'
import { AccountSummary, dnsDuringSuspension, Suspension } from './events.ts'
import { Reason } from './takedowns.ts'
import { Ticket, ticketExample, ticketPriorities, ticketStatuses } from './tickets.ts'
import { secretFields } from './tokens.ts'

export const OperatorTicket = Type.Object(
  { ...Ticket.properties, account: Named(AccountSummary) },
  {
    $id: 'OperatorTicket',
    description: 'A ticket and the account that opened it',
    examples: [{ ...ticketExample, account: { id: 'acc_01jcqk4m1p0ga8z3w6x5n2dv', name: 'acme' } }],
  },
)

export const OperatorTicketList = ListOf('tickets', OperatorTicket)

export const ChangeTicketAsSupport = Body(
  { status: Type.Optional(Choice(ticketStatuses)), priority: Type.Optional(Choice(ticketPriorities)) },
  { $id: 'ChangeTicketAsSupport', minProperties: 1, examples: [{ status: 'IN_PROGRESS', priority: 'high' }] },
)

const accountExample = {
  id: 'acc_01jcqk4m1p0ga8z3w6x5n2dv',
  name: 'acme',
  suspended: false,
  suspendedAt: null,
  createdAt: '2026-11-14T09:00:00.000Z',
  suspension: null,
}

export const OperatorAccount = Type.Object(
  {
    id: Type.String({ description: 'acc_…' }),
    name: Type.String(),
    suspended: Type.Boolean({ description: 'Tokens, pushes, builds, servers and sites of the account are stopped' }),
    suspendedAt: Nullable(Timestamp),
    createdAt: Timestamp,
    suspension: NullableNamed(Suspension),
  },
  { $id: 'OperatorAccount', description: 'An account of the platform', examples: [accountExample] },
)

// Its checksum is wrong, so secret scanners don't take it for a leaked token.
const exampleSecret = 'brt_EXAMPLEEXAMPLEEXAMPLEEXAMPLEEX000000'

export const NewAccount = Type.Object(
  {
    ...OperatorAccount.properties,
    ...secretFields,
  },
  {
    $id: 'NewAccount',
    description: 'A new account, and the secret of its test key, which has full access to it',
    examples: [{ ...accountExample, secret: exampleSecret, token: exampleSecret }],
  },
)

export const CreateAccount = Body(
  {
    name: Type.String({
      minLength: 1,
      maxLength: 100,
      // Invisible characters would allow names that look alike.
      pattern: '^[^\\s\\p{Cc}\\p{Cf}]([^\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}]*[^\\s\\p{Cc}\\p{Cf}])?$',
      description: 'must be 1 to 100 printable characters, without surrounding spaces',
    }),
  },
  { $id: 'CreateAccount', examples: [{ name: 'acme' }] },
)

export const ChangeAccount = Body(
  {
    suspended: Type.Boolean(),
    dns: Type.Optional(
      Choice(dnsDuringSuspension, {
        description: 'Whether the nameservers go on answering for the zones of the account; at first they do',
      }),
    ),
    reason: Type.Optional(Reason),
  },
  {
    $id: 'ChangeAccount',
    examples: [{ suspended: true, dns: 'serve', reason: 'Unpaid since September' }, { suspended: false }],
  },
)

export const AccountParams = Type.Object({ id: Type.String({ description: 'acc_…' }) })

export const AccountList = ListOf('accounts', OperatorAccount)

export const AccountQuery = ListQuery({})
