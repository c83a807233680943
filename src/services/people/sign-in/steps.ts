// State of sign-ins that take more than one request, bound to the browser that has the secret.
import type { Prisma } from '../../../generated/client.ts'
import type { Db } from '../../../platform/database/database.ts'
import { Fault } from '../../../platform/errors.ts'
import { hashToken, newSecret } from '../../../platform/secrets/secrets.ts'

export const stepSeconds = 300

export type StepData = {
  /** Sign-in with a passkey. */
  passkey: { challenge: string }
  /** Registration of a passkey. */
  register: { challenge: string; userId: string }
  /** The password was correct; `password` is a digest of its hash, which changes with the password. */
  totp: { userId: string; password: string }
  /** `before`: the browser's current session, whose cookie is not sent on the return from another site. */
  oidc: { state: string; nonce: string; verifier: string; before: { id: string; userId: string } | null }
}

type Kind = keyof StepData

/** Starts a step and returns its secret, which only the browser may get. */
export async function createStep<K extends Kind>(db: Db, kind: K, data: StepData[K]): Promise<string> {
  const secret = newSecret()
  const expiresAt = new Date(Date.now() + stepSeconds * 1000)
  await db.signInStep.create({ data: { hash: hashOf(secret), kind, data: data as Prisma.InputJsonObject, expiresAt } })
  return secret
}

/** Reads a step without consuming it. Throws if it does not exist or has expired. */
export async function findStep<K extends Kind>(db: Db, kind: K, secret: string | null): Promise<StepData[K]> {
  const where = { hash: hashOf(secret ?? ''), kind, expiresAt: { gt: new Date() } }
  const step = await db.signInStep.findFirst({ where, select: { data: true } })
  if (!step) throw new Fault('sign_in_step_over')
  return step.data as StepData[K]
}

/** Reads and deletes a step. Of several concurrent callers, one gets it. */
export async function consumeStep<K extends Kind>(db: Db, kind: K, secret: string | null): Promise<StepData[K]> {
  const data = await findStep(db, kind, secret)
  const { count } = await db.signInStep.deleteMany({ where: { hash: hashOf(secret ?? '') } })
  if (count === 0) throw new Fault('sign_in_step_over')
  return data
}

const hashOf = (secret: string) => Uint8Array.from(hashToken(secret))
