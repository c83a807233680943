// Who is signed in, and signing in: what every way to sign in ends with.
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Database } from '../../platform/database/database.ts'
import { Fault } from '../../platform/errors.ts'
import {
  endSession,
  findSession,
  openSession,
  type SessionWithUser,
  type SignIn,
  viewSession,
  viewUser,
} from '../../services/people/index.ts'
import { sessionOf, setSession } from './cookie.ts'

/** The session of the request; null without one that lives. */
export async function findSigned(db: Database, request: FastifyRequest): Promise<SessionWithUser | null> {
  const secret = sessionOf(request)
  return secret === null ? null : findSession(db, secret)
}

/** The session of the request; throws without one that lives. */
export async function requireSigned(db: Database, request: FastifyRequest): Promise<SessionWithUser> {
  const found = await findSigned(db, request)
  if (!found) throw new Fault('not_signed_in')
  return found
}

/** Where a sign-in comes from, for the person's own list. */
export function originOf(request: FastifyRequest): Pick<SignIn, 'userAgent' | 'address'> {
  return { userAgent: request.headers['user-agent'] ?? '', address: request.ip }
}

type Opened = { secret: string; session: SessionWithUser }

/** Answers with a new session; the one that the browser had before ends, whoever it was of. */
export async function sendSession(db: Database, request: FastifyRequest, reply: FastifyReply, opened: Opened) {
  const before = await findSigned(db, request)
  if (before && before.id !== opened.session.id) await endSession(db, before.userId, before.id).catch(() => {})
  setSession(reply, opened.secret)
  return { user: viewUser(opened.session.user), session: viewSession(opened.session) }
}

/** Signs a person in who has proved who they are, and is the answer to that. */
export async function signIn(
  db: Database,
  request: FastifyRequest,
  reply: FastifyReply,
  proved: Pick<SignIn, 'userId' | 'method'>,
) {
  return sendSession(db, request, reply, await openSession(db, { ...proved, ...originOf(request) }))
}
