// Domain disputes, as the operator settles them.
import { Type } from '@sinclair/typebox'
import { Body, Named } from './common.ts'
import { Domain } from './domains.ts'
import { AccountSummary } from './events.ts'

export const OperatorDomain = Type.Object(
  { ...Domain.properties, account: Named(AccountSummary) },
  {
    $id: 'OperatorDomain',
    description: 'A domain and the account that it belongs to',
    examples: [{ ...Domain.examples[0], account: { id: 'acc_01jcqk4m1p0ga8z3w6x5n2dv', name: 'acme' } }],
  },
)

export const AssignDomain = Body(
  {
    account: Type.String({ minLength: 1, maxLength: 100, description: 'acc_…, an account that has added the domain' }),
    reason: Type.String({
      minLength: 1,
      maxLength: 500,
      description: 'Why; shown to the accounts that lose the domain',
    }),
  },
  {
    $id: 'AssignDomain',
    examples: [
      { account: 'acc_01jcqk4m1p0ga8z3w6x5n2dv', reason: 'The registrar confirmed on 14 November whose domain it is.' },
    ],
  },
)
