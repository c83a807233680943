// Signing in: the input of the password, one-time password and passkey routes. None of it is part of the public API.
import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server'
import { type TProperties, Type } from '@sinclair/typebox'
import { Body, OptionalBody } from './common.ts'
import { Email, Password } from './people.ts'

export const SignInByPassword = Body({ email: Email, password: Password })

/** The current password; required once the session is older than ten minutes. */
const proof = { current: Type.Optional(Password) }

export const ChangePassword = Body({ ...proof, password: Password })
export const Proof = OptionalBody(Body(proof))

export const OneTimeCode = Body({ code: Type.String({ minLength: 6, maxLength: 40 }) })

const Bytes = Type.String({ maxLength: 16_384, pattern: '^[A-Za-z0-9_-]*$', description: 'must be base64url' })

/** The format of `toJSON` of a browser's credential; browsers may add fields. */
const Credential = <T extends TProperties>(response: T) =>
  Type.Object({
    id: Type.String({ minLength: 1, maxLength: 1400, pattern: '^[A-Za-z0-9_-]+$', description: 'must be base64url' }),
    rawId: Bytes,
    type: Type.Literal('public-key'),
    response: Type.Object({ clientDataJSON: Bytes, ...response }),
  })

const PasskeyName = Type.String({
  minLength: 1,
  maxLength: 100,
  pattern: '^[^\\u0000-\\u001f\\u007f-\\u009f]+$',
  description: 'must be a name without control characters',
})
const Transports = Type.Optional(Type.Array(Type.String({ maxLength: 20, pattern: '^[a-z-]+$' }), { maxItems: 10 }))

export const SignInByPasskey = Body({
  response: Type.Unsafe<AuthenticationResponseJSON>(
    Credential({ authenticatorData: Bytes, signature: Bytes, userHandle: Type.Optional(Bytes) }),
  ),
})
export const CreatePasskey = Body({
  name: PasskeyName,
  response: Type.Unsafe<RegistrationResponseJSON>(Credential({ attestationObject: Bytes, transports: Transports })),
})
export const RenamePasskey = Body({ name: PasskeyName })
export const PasskeyParams = Type.Object({ id: Type.String({ maxLength: 64 }) })
