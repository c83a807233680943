// Steps of a sign-in that takes more than one request: what must be known again, for the browser that holds the secret.
import type { Prisma } from '../../../generated/client.ts'
import type { Db } from '../../../platform/database/database.ts'
import { Fault } from '../../../platform/errors.ts'
import { hashToken, newSecret } from '../../../platform/secrets/secrets.ts'

export const stepSeconds = 300

export type StepData = {
  /** Sign-in by a passkey. */
  passkey: { challenge: string }
  /** A new passkey of the person. */
  register: { challenge: string; userId: string }
  /** The password was right; `password` is a digest of its hash, which changes with the password. */
  totp: { userId: string; password: string }
  /** `before`: the session that the browser has, whose cookie does not come back from another site. */
  oidc: { state: string; nonce: string; verifier: string; before: { id: string; userId: string } | null }
}

type Kind = keyof StepData

/** The secret is for the browser alone. */
export async function beginStep<K extends Kind>(db: Db, kind: K, data: StepData[K]): Promise<string> {
  const secret = newSecret()
  const expiresAt = new Date(Date.now() + stepSeconds * 1000)
  await db.signInStep.create({ data: { hash: hashOf(secret), kind, data: data as Prisma.InputJsonObject, expiresAt } })
  return secret
}

/** Throws if the browser has no step of this kind, or its time is over. It can still be taken. */
export async function lookAtStep<K extends Kind>(db: Db, kind: K, secret: string | null): Promise<StepData[K]> {
  const where = { hash: hashOf(secret ?? ''), kind, expiresAt: { gt: new Date() } }
  const step = await db.signInStep.findFirst({ where, select: { data: true } })
  if (!step) throw new Fault('sign_in_step_over')
  return step.data as StepData[K]
}

/** Uses the step up: of several at once, one gets it. */
export async function takeStep<K extends Kind>(db: Db, kind: K, secret: string | null): Promise<StepData[K]> {
  const data = await lookAtStep(db, kind, secret)
  const { count } = await db.signInStep.deleteMany({ where: { hash: hashOf(secret ?? '') } })
  if (count === 0) throw new Fault('sign_in_step_over')
  return data
}

const hashOf = (secret: string) => Uint8Array.from(hashToken(secret))
