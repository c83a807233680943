// Programs that a person signs in at the console: the program holds one code and asks, the person compares another one.
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
import { holdSession, type SessionWithUser } from '../sessions.ts'
import { findMembership } from './console-tokens.ts'

export const deviceSeconds = 600
const intervalSeconds = 5
const tokenMs = 90 * 24 * 60 * 60_000
// No vowels, so that no words come out; no letters that are read as another one.
const letters = 'BCDFGHJKMNPQRSTVWXZ'
const codeLength = 8
const defaultClient = 'A program'

function newUserCode(): string {
  const code = Array.from({ length: codeLength }, () => letters[randomInt(letters.length)]).join('')
  return `${code.slice(0, 4)}-${code.slice(4)}`
}

/** However it is typed: in small letters, without the dash, with blanks. */
const userHashOf = (code: string) => hashOf(`device ${code.toUpperCase().replace(/[^A-Z]/g, '')}`)

export type Begun = { deviceCode: string; userCode: string; interval: number }

export async function beginDevice(db: Db, { client = defaultClient, address }: { client?: string; address: string }) {
  const deviceCode = newSecret()
  const now = new Date()
  const expiresAt = new Date(now.getTime() + deviceSeconds * 1000)
  for (let tries = 1; ; tries++) {
    const userCode = newUserCode()
    const codes = { hash: hashOf(deviceCode), userHash: userHashOf(userCode) }
    const data = { ...codes, client, address, interval: intervalSeconds, expiresAt, createdAt: now }
    try {
      await db.deviceLogin.create({ data })
      return { deviceCode, userCode, interval: intervalSeconds } satisfies Begun
    } catch (error) {
      // Of 17 thousand million codes, one that is in use.
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

/** What waits for an answer by this code. */
export async function lookAtDevice(db: Db, userCode: string) {
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

/** Of two answers at once, the first counts. */
export async function answerDevice(db: Db, session: SessionWithUser, answer: DeviceAnswer): Promise<void> {
  const { userCode, approve, account } = answer
  await inTransaction(db, async (db) => {
    await holdSession(db, session)
    const where = { userHash: userHashOf(userCode), state: 'pending', expiresAt: { gt: new Date() } }
    const data = approve ? await approval(db, session, account, answer.scopes) : { state: 'denied' }
    const { count } = await db.deviceLogin.updateMany({ where, data })
    if (count === 0) throw notFound()
  })
}

async function approval(db: Db, session: SessionWithUser, account: string | undefined, wanted: Scope[] | undefined) {
  const { id, tokenId } = await findMembership(db, session.userId, account)
  const { scopes } = await db.token.findUniqueOrThrow({ where: { id: tokenId }, select: { scopes: true } })
  const held = scopes as Scope[]
  const refused = (wanted ?? []).flatMap((scope, index) =>
    grants(held, scope) ? [] : badField(`#/scopes/${index}`, 'not_allowed', 'you do not have this scope yourself'),
  )
  refuseFields(refused)
  return { state: 'approved', membershipId: id, scopes: wanted ?? held.filter((scope) => scope !== 'operator') }
}

/** The token, once a person has approved it; throws until then, and ever after. */
export async function takeDeviceToken(db: Db, deviceCode: string) {
  const hash = hashOf(deviceCode)
  const found = await db.deviceLogin.findFirst({ where: { hash, expiresAt: { gt: new Date() } } })
  if (!found) throw new Fault('expired_token')
  if (found.state === 'approved') return inTransaction(db, (db) => mint(db, found))
  if (found.state === 'pending') throw await notePoll(db, found)
  await db.deviceLogin.deleteMany({ where: { hash } })
  throw new Fault('access_denied')
}

async function notePoll(db: Db, { hash, polledAt, interval }: DeviceLogin): Promise<Fault> {
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
  // Of two who ask at once, one deletes the row.
  const { count } = await db.deviceLogin.deleteMany({ where: { hash, state: 'approved' } })
  const now = await db.membership.findFirst({
    where: { id: membership.id },
    include: { account: true, token: true },
  })
  if (count === 0 || !now) throw new Fault('expired_token')
  const { account, userId, tokenId: parentId, token: held } = now
  if (account.suspendedAt) throw new Fault('account_suspended')
  // The role may have become a smaller one since.
  const scopes = (approved as Scope[]).filter((scope) => grants(held.scopes as Scope[], scope))
  if (scopes.length === 0) throw new Fault('access_denied')
  const expiresAt = new Date(Date.now() + tokenMs)
  const rights = { accountId: account.id, scopes, projectIds: held.projectIds, expiresAt }
  const { id, secret } = await insertToken(db, { ...rights, name: client, parentId, userId })
  const [row] = await withNames(db, [await db.token.findUniqueOrThrow({ where: { id } })])
  const event = { accountId: account.id, projectId: null, type: 'token.created', actor: userId, subject: id } as const
  await append(db, [{ ...event, data: viewToken(row!) }])
  return { secret, id, scopes, expiresAt, account: { id: account.id, name: account.name } }
}
