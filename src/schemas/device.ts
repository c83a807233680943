// Signing in a program through a person at the console.
import { Type } from '@sinclair/typebox'
import { Body, Choice } from './common.ts'
import { tokenScopes } from './tokens.ts'

const UserCode = Type.String({ minLength: 1, maxLength: 40, description: 'The code that the program shows' })

export const BeginDevice = Body({
  client: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 100,
      pattern: '^[^\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}]+$',
      description: 'must be one line of at most 100 characters: the name of the program',
    }),
  ),
})

export const PollDevice = Body({
  device_code: Type.String({ minLength: 1, maxLength: 100 }),
  grant_type: Type.Optional(Choice(['urn:ietf:params:oauth:grant-type:device_code'] as const)),
})

export const RevokeHeld = Body({
  token: Type.String({ minLength: 1, maxLength: 500, description: 'The token that ends' }),
})

export const LookAtDevice = Body({ userCode: UserCode })

export const AnswerDevice = Body({
  userCode: UserCode,
  approve: Type.Boolean(),
  account: Type.Optional(Type.String({ minLength: 1, maxLength: 100, description: 'Name of the account, or its id' })),
  scopes: Type.Optional(
    Type.Array(Choice(tokenScopes), {
      minItems: 1,
      maxItems: 20,
      uniqueItems: true,
      description: 'What the token may do; left out: all that the person may, but the work of an operator',
    }),
  ),
})
