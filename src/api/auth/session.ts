// The session of a request, and the end of every sign-in.
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

/** The session of the request, if it is valid. */
export async function currentSession(db: Database, request: FastifyRequest): Promise<SessionWithUser | null> {
  const secret = sessionOf(request)
  return secret === null ? null : findSession(db, secret)
}

/** The session of the request; throws unless it is valid. */
export async function requireSession(db: Database, request: FastifyRequest): Promise<SessionWithUser> {
  const found = await currentSession(db, request)
  if (!found) throw new Fault('not_signed_in')
  return found
}

/** Where a sign-in comes from, as the person's list of sessions shows it. */
export function originOf(request: FastifyRequest): Pick<SignIn, 'userAgent' | 'address'> {
  return { userAgent: request.headers['user-agent'] ?? '', address: request.ip }
}

type Opened = { secret: string; session: SessionWithUser }

/** Responds with a new session. The browser's previous session ends, whoever it belonged to. */
export async function sendSession(db: Database, request: FastifyRequest, reply: FastifyReply, opened: Opened) {
  const before = await currentSession(db, request)
  if (before && before.id !== opened.session.id) await endSession(db, before.userId, before.id).catch(() => {})
  setSession(reply, opened.secret)
  return { user: viewUser(opened.session.user), session: viewSession(opened.session) }
}

/** Signs in a person who has proved who they are, and responds. */
export async function signIn(
  db: Database,
  request: FastifyRequest,
  reply: FastifyReply,
  proved: Pick<SignIn, 'userId' | 'method'>,
) {
  return sendSession(db, request, reply, await openSession(db, { ...proved, ...originOf(request) }))
}
