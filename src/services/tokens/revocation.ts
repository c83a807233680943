// Revokes tokens, each with its lineage and everything those created: a thief may have created some.
import type { Token } from '../../generated/client.ts'
import { type Db, inTransaction } from '../../platform/database/database.ts'
import { Fault } from '../../platform/errors.ts'
import { roleNames } from '../../schemas/people.ts'
import { append, eventOf } from '../events/index.ts'
import type { Actor } from '../identity/index.ts'
import { decideTwice, lockCaller, requireRights, withRights } from './lineage.ts'
import { revokeLine, selectLine, withdrawInvitations } from './statements.ts'
import { versionOf, viewToken, withNames } from './tokens.ts'

// However many tokens an operator allows, one revocation must end them all: 40,000 events outlast a transaction.
const maxEvents = 1_000

export async function revokeToken(
  db: Db,
  actor: Actor,
  id: string,
  precondition: (version: unknown) => void,
): Promise<void> {
  const gone = () => new Fault('not_found', `There is no token ${id}.`)
  await inTransaction(db, async (db) => {
    async function check(revoker: Actor, token: Token): Promise<void> {
      requireRights(revoker, token, 'revoke')
      const [row] = await withNames(db, [token])
      precondition(versionOf(viewToken(row!)))
    }
    const { caller, revoker, token } = await decideTwice(db, actor, async (caller) => {
      const revoker = withRights(actor, caller)
      const token = await db.token.findFirst({ where: { id, accountId: actor.accountId, hidden: false } })
      if (!token) throw gone()
      if (!token.revokedAt) await check(revoker, token)
      return { caller, revoker, token }
    })
    const line = await selectLine(db, { id })
    // Deleting a token that was rotated without an overlap ends what came from it. A script that only cleans up after
    // its own rotation must not end itself.
    if (token.revokedAt) {
      if (line.length === 0 || line.some((one) => one.id === caller.id)) throw gone()
      await check(revoker, token)
    }
    for (const one of line) requireRights(revoker, one, 'revoke')
    await endLine(db, actor, { id, itself: true })
  })
}

/** A token may revoke itself and what came from it, whatever its scopes; not what it replaced, which may have more. */
export async function revokeOwnToken(db: Db, actor: Actor): Promise<void> {
  await inTransaction(db, async (db) => {
    await lockCaller(db, actor)
    await endLine(db, actor, { id: actor.tokenId, itself: true, later: true })
  })
}

type Line = {
  id: string
  itself: boolean
  /** Spares the tokens that its lineage had before it. Default: false. */
  later?: boolean
}

/**
 * Revokes the line of a token, and the token if `itself`; the first `maxEvents` get an event each. Open invitations that
 * any of them sent are withdrawn, the token's own even if it stays: a thief may have sent them.
 */
export async function endLine(db: Db, actor: Actor, { id, itself, later = false }: Line): Promise<void> {
  await withdrawInvitations(db, { id, userId: null, roles: roleNames })
  const ended = (await revokeLine(db, { id, later, itself, now: new Date() })).map((row) => row.id)
  const told = [...ended.filter((one) => one === id), ...ended.filter((one) => one !== id)].slice(0, maxEvents)
  const rows = await withNames(db, await db.token.findMany({ where: { id: { in: told }, hidden: false } }))
  await append(
    db,
    rows.map((row) => eventOf(actor, 'token.revoked', { subject: row.id, projectId: null, data: viewToken(row) })),
  )
}
