// Passkeys (WebAuthn): registration, sign-in and management.
import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server'
import type { Logger } from 'pino'
import type { Passkey, User } from '../../../generated/client.ts'
import { type Database, type Db, violation } from '../../../platform/database/database.ts'
import { Fault, invalidField } from '../../../platform/errors.ts'
import { newId } from '../../../platform/ids.ts'
import { lockSession, type SessionWithUser } from '../sessions.ts'
import { consumeStep, createStep } from './steps.ts'

const maxPasskeys = 20
const timeout = 300_000
// Ed25519, P-256, RSA: as COSE numbers them.
const algorithms = [-8, -7, -257]

// Loaded on first use: it takes 25 MB, which a process without sign-ins saves.
const webauthn = () => import('@simplewebauthn/server')

/** The host name to which passkeys are bound, and the origin of its pages. */
export type RelyingParty = { id: string; origin: string }

export function relyingPartyOf(baseUrl: string): RelyingParty {
  const { hostname, origin } = new URL(baseUrl)
  return { id: hostname, origin }
}

export function viewPasskey({ id, name, transports, createdAt, lastUsedAt }: Passkey) {
  return {
    id,
    name,
    transports,
    createdAt: createdAt.toISOString(),
    lastUsedAt: lastUsedAt?.toISOString() ?? null,
  }
}

const userHandle = (userId: string) => Uint8Array.from(Buffer.from(userId))

/** Starts a sign-in; only the browser gets the secret of the step. The options reveal nothing about any person. */
export async function passkeyOptions(db: Db, { id: rpID }: RelyingParty) {
  // A passkey counts as two factors, so the device must verify the user.
  const { generateAuthenticationOptions } = await webauthn()
  const options = await generateAuthenticationOptions({ rpID, timeout, userVerification: 'required' })
  return { options, step: await createStep(db, 'passkey', { challenge: options.challenge }) }
}

export type PasskeyAnswer<Response> = { step: string | null; response: Response }

/** Finds the person whose passkey signed the challenge. */
export async function signInByPasskey(
  db: Db,
  party: RelyingParty,
  { step, response }: PasskeyAnswer<AuthenticationResponseJSON>,
  log: Logger,
): Promise<User> {
  const { challenge } = await consumeStep(db, 'passkey', step)
  const credentialId = Uint8Array.from(Buffer.from(response.id, 'base64url'))
  const found = await db.passkey.findUnique({ where: { credentialId }, include: { user: true } })
  const handle = response.response.userHandle
  const isOwn = found && handle === Buffer.from(userHandle(found.userId)).toString('base64url')
  if (!isOwn || isFramed(response)) throw new Fault('sign_in_failed')
  // The update below checks the counter.
  const credential = { id: response.id, publicKey: Uint8Array.from(found.publicKey), counter: 0 }
  const { verifyAuthenticationResponse } = await webauthn()
  const result = await verifyAuthenticationResponse({
    response,
    expectedChallenge: challenge,
    expectedOrigin: party.origin,
    expectedRPID: party.id,
    credential,
  }).catch((cause) => {
    throw new Fault('sign_in_failed', undefined, { cause })
  })
  if (!result.verified) throw new Fault('sign_in_failed')
  const counter = BigInt(result.authenticationInfo.newCounter)
  const isLater = [{ counter: { lt: counter } }, ...(counter === 0n ? [{ counter }] : [])]
  const data = { counter, lastUsedAt: new Date() }
  const { count } = await db.passkey.updateMany({ where: { id: found.id, OR: isLater }, data })
  if (count === 0) {
    log.warn({ passkey: found.id, user: found.userId }, 'passkey counter went backwards: the passkey may be a copy')
    throw new Fault('sign_in_failed')
  }
  return found.user
}

/** Whether the page was framed by another site, where people can't see what they confirm. */
function isFramed({ response }: { response: { clientDataJSON: string } }): boolean {
  try {
    return JSON.parse(Buffer.from(response.clientDataJSON, 'base64url').toString()).crossOrigin === true
  } catch {
    return true
  }
}

export async function registrationOptions(db: Db, { id: rpID }: RelyingParty, user: User) {
  const passkeys = await db.passkey.findMany({ where: { userId: user.id } })
  refuseTooMany(passkeys.length)
  const { generateRegistrationOptions } = await webauthn()
  const options = await generateRegistrationOptions({
    rpName: 'Berth',
    rpID,
    userID: userHandle(user.id),
    userName: user.email,
    userDisplayName: user.name,
    timeout,
    supportedAlgorithmIDs: algorithms,
    excludeCredentials: passkeys.map(({ credentialId, transports }) => ({
      id: Buffer.from(credentialId).toString('base64url'),
      transports: transports as [],
    })),
    // The browser finds resident keys without a user name.
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
  })
  return { options, step: await createStep(db, 'register', { challenge: options.challenge, userId: user.id }) }
}

function refuseTooMany(used: number): void {
  if (used < maxPasskeys) return
  const detail = `You have ${used} passkeys, which is the limit. Delete one first.`
  throw new Fault('quota_exceeded', detail, { limit: 'passkeys', used, max: maxPasskeys })
}

export type NewPasskey = PasskeyAnswer<RegistrationResponseJSON> & { name: string }

export async function createPasskey(
  db: Database,
  party: RelyingParty,
  session: SessionWithUser,
  { name, step, response }: NewPasskey,
): Promise<Passkey> {
  const { userId } = session
  const registration = await consumeStep(db, 'register', step)
  // Another person started this step in the same browser.
  if (registration.userId !== userId) throw new Fault('sign_in_step_over')
  const { credential } = await verifyRegistration(party, registration.challenge, response)
  const data = {
    id: newId('psk'),
    userId,
    name,
    credentialId: Uint8Array.from(Buffer.from(credential.id, 'base64url')),
    publicKey: Uint8Array.from(credential.publicKey),
    counter: BigInt(credential.counter),
    transports: credential.transports ?? [],
    createdAt: new Date(),
  }
  return db
    .$transaction(async (db: Db) => {
      await lockSession(db, session)
      refuseTooMany(await db.passkey.count({ where: { userId } }))
      return db.passkey.create({ data })
    })
    .catch((error) => {
      throw violation(error)?.kind === 'unique' ? new Fault('passkey_exists') : error
    })
}

async function verifyRegistration(party: RelyingParty, challenge: string, response: RegistrationResponseJSON) {
  try {
    if (isFramed(response) || (await hasCertificates(response))) throw new Error('refused before it was verified')
    const { verifyRegistrationResponse } = await webauthn()
    const { verified, registrationInfo } = await verifyRegistrationResponse({
      response,
      expectedChallenge: challenge,
      expectedOrigin: party.origin,
      expectedRPID: party.id,
      supportedAlgorithmIDs: algorithms,
    })
    if (!verified) throw new Error('the signature is wrong')
    return registrationInfo
  } catch {
    throw invalidField('#/response', 'not_verified', 'does not match the request; start again')
  }
}

/** Whether the response has device certificates. We don't request any, and checking them would fetch URLs in them. */
async function hasCertificates({ response }: RegistrationResponseJSON): Promise<boolean> {
  const { decodeAttestationObject } = await import('@simplewebauthn/server/helpers')
  const object = decodeAttestationObject(Uint8Array.from(Buffer.from(response.attestationObject, 'base64url')))
  const format = object.get('fmt')
  return format !== 'none' && (format !== 'packed' || object.get('attStmt').get('x5c') !== undefined)
}

export async function listPasskeys(db: Db, userId: string): Promise<Passkey[]> {
  return db.passkey.findMany({ where: { userId }, orderBy: { id: 'asc' } })
}

export async function renamePasskey(db: Db, userId: string, id: string, name: string): Promise<Passkey> {
  await db.passkey.updateMany({ where: { id, userId }, data: { name } })
  const found = await db.passkey.findFirst({ where: { id, userId } })
  if (!found) throw notFound(id)
  return found
}

/** Deletes a passkey unless it is the last sign-in method. `oidc`: whether an identity provider is configured. */
export async function deletePasskey(
  db: Database,
  session: SessionWithUser,
  { id, oidc }: { id: string; oidc: boolean },
): Promise<void> {
  const { userId } = session
  await db.$transaction(async (db: Db) => {
    await lockSession(db, session)
    const { passwordHash, oidcSubject } = await db.user.findUniqueOrThrow({ where: { id: userId } })
    const { count } = await db.passkey.deleteMany({ where: { id, userId } })
    if (count === 0) throw notFound(id)
    const hasOther = passwordHash !== null || (oidc && oidcSubject !== null)
    if (!hasOther && (await db.passkey.count({ where: { userId } })) === 0) throw new Fault('last_sign_in_method')
  })
}

const notFound = (id: string) => new Fault('not_found', `There is no passkey ${id}.`)
