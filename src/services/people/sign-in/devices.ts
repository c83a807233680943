// Device sign-in (RFC 8628): a program polls with a device code while a person approves its user code in the console.
import { randomInt } from 'node:crypto'
import type { DeviceLogin } from '../../../generated/client.ts'
import { type Db, inTransaction, violation } from '../../../platform/database/database.ts'
import { Fault, invalidField } from '../../../platform/errors.ts'
import { badField, refuseFields } from '../../../platform/fields.ts'
import { newSecret } from '../../../platform/secrets/secrets.ts'
import { append } from '../../events/index.ts'
import { lockAccount, type Scope } from '../../identity/index.ts'
import { grants, insertToken, viewToken, withNames } from '../../tokens/index.ts'
import { hashOf } from '../links.ts'
import { lockSession, type SessionWithUser } from '../sessions.ts'
import { findMembership } from './console-tokens.ts'

export const deviceSeconds = 600
const intervalSeconds = 5
const tokenMs = 90 * 24 * 60 * 60_000
// No vowels, so codes spell no words, and no letters that look like another one.
const letters = 'BCDFGHJKMNPQRSTVWXZ'
const codeLength = 8
const defaultClient = 'A program'

function newUserCode(): string {
  const code = Array.from({ length: codeLength }, () => letters[randomInt(letters.length)]).join('')
  return `${code.slice(0, 4)}-${code.slice(4)}`
}

/** Ignores case, dashes and spaces, because people type the code. */
const userHashOf = (code: string) => hashOf(`device ${code.toUpperCase().replace(/[^A-Z]/g, '')}`)

export async function startDeviceLogin(
  db: Db,
  { client = defaultClient, address }: { client?: string; address: string },
) {
  const deviceCode = newSecret()
  const now = new Date()
  const expiresAt = new Date(now.getTime() + deviceSeconds * 1000)
  for (let tries = 1; ; tries++) {
    const userCode = newUserCode()
    const codes = { hash: hashOf(deviceCode), userHash: userHashOf(userCode) }
    const data = { ...codes, client, address, interval: intervalSeconds, expiresAt, createdAt: now }
    try {
      await db.deviceLogin.create({ data })
      return { deviceCode, userCode, interval: intervalSeconds }
    } catch (error) {
      // One of 17 billion codes, but already in use.
      if (violation(error)?.kind !== 'unique' || tries === 3) throw error
    }
  }
}

function notFound(): Fault {
  return invalidField(
    '#/userCode',
    'not_found',
    'is wrong, expired or already used; start the sign-in again on your device',
  )
}

/** Finds the pending sign-in of a user code. */
export async function findDeviceLogin(db: Db, userCode: string) {
  const where = { userHash: userHashOf(userCode), state: 'pending', expiresAt: { gt: new Date() } }
  const found = await db.deviceLogin.findFirst({ where })
  if (!found) throw notFound()
  const { client, address, createdAt, expiresAt } = found
  return { client, address, createdAt: createdAt.toISOString(), expiresAt: expiresAt.toISOString() }
}

export type DeviceAnswer = {
  userCode: string
  approve: boolean
  account?: string | undefined
  scopes?: Scope[] | undefined
}

/** Approves or denies a device sign-in. Of two concurrent answers, the first wins. */
export async function answerDeviceLogin(db: Db, session: SessionWithUser, answer: DeviceAnswer): Promise<void> {
  const { userCode, approve, account } = answer
  await inTransaction(db, async (db) => {
    await lockSession(db, session)
    const where = { userHash: userHashOf(userCode), state: 'pending', expiresAt: { gt: new Date() } }
    const data = approve ? await approval(db, session, account, answer.scopes) : { state: 'denied' }
    const { count } = await db.deviceLogin.updateMany({ where, data })
    if (count === 0) throw notFound()
  })
}

async function approval(db: Db, session: SessionWithUser, account: string | undefined, requested: Scope[] | undefined) {
  const { id, tokenId } = await findMembership(db, session.userId, account)
  const { scopes } = await db.token.findUniqueOrThrow({ where: { id: tokenId }, select: { scopes: true } })
  const own = scopes as Scope[]
  const refused = (requested ?? []).flatMap((scope, index) =>
    grants(own, scope) ? [] : badField(`#/scopes/${index}`, 'not_allowed', 'you do not have this scope yourself'),
  )
  refuseFields(refused)
  return { state: 'approved', membershipId: id, scopes: requested ?? own.filter((scope) => scope !== 'operator') }
}

/** Creates the token once a person has approved it. Throws before that, and on every later call. */
export async function redeemDeviceCode(db: Db, deviceCode: string) {
  const hash = hashOf(deviceCode)
  const found = await db.deviceLogin.findFirst({ where: { hash, expiresAt: { gt: new Date() } } })
  if (!found) throw new Fault('expired_token')
  if (found.state === 'approved') return inTransaction(db, (db) => mint(db, found))
  if (found.state === 'pending') throw await recordPoll(db, found)
  await db.deviceLogin.deleteMany({ where: { hash } })
  throw new Fault('access_denied')
}

async function recordPoll(db: Db, { hash, polledAt, interval }: DeviceLogin): Promise<Fault> {
  const now = new Date()
  const isEarly = polledAt !== null && now.getTime() - polledAt.getTime() < interval * 1000
  const data = { polledAt: now, ...(isEarly && { interval: { increment: 5 } }) }
  await db.deviceLogin.updateMany({ where: { hash, state: 'pending' }, data })
  return new Fault(isEarly ? 'slow_down' : 'authorization_pending')
}

async function mint(db: Db, { hash, client, membershipId, scopes: approved }: DeviceLogin) {
  const membership = await db.membership.findFirst({ where: { id: membershipId! } })
  if (!membership) throw new Fault('expired_token')
  await lockAccount(db, { id: membership.accountId })
  // Of two concurrent requests, only one deletes the row.
  const { count } = await db.deviceLogin.deleteMany({ where: { hash, state: 'approved' } })
  const now = await db.membership.findFirst({
    where: { id: membership.id },
    include: { account: true, token: true },
  })
  if (count === 0 || !now) throw new Fault('expired_token')
  const { account, userId, tokenId: parentId, token: parent } = now
  if (account.suspendedAt) throw new Fault('account_suspended')
  // The person may have lost scopes since the approval.
  const scopes = (approved as Scope[]).filter((scope) => grants(parent.scopes as Scope[], scope))
  if (scopes.length === 0) throw new Fault('access_denied')
  const expiresAt = new Date(Date.now() + tokenMs)
  const rights = { accountId: account.id, scopes, projectIds: parent.projectIds, expiresAt }
  const { id, secret } = await insertToken(db, { ...rights, name: client, parentId, userId })
  const [row] = await withNames(db, [await db.token.findUniqueOrThrow({ where: { id } })])
  const event = { accountId: account.id, projectId: null, type: 'token.created', actor: userId, subject: id } as const
  await append(db, [{ ...event, data: viewToken(row!) }])
  return { secret, id, scopes, expiresAt, account: { id: account.id, name: account.name } }
}
