// Tokens in SQL.
import { columnsOf, pick, selected } from '../../platform/database/columns.ts'
import {
  boolean,
  int4,
  int8,
  optional,
  statement,
  text,
  textArray,
  timestamptz,
} from '../../platform/database/statement.ts'
import type { Scope, ZonePart } from '../identity/index.ts'

const token = columnsOf<'Token', { scopes: readonly Scope[]; zoneParts: readonly ZonePart[] | null }>('Token')
const rights = pick(token, ['id', 'scopes', 'projectIds', 'zoneParts'])
const accepted = pick(token, ['accountId', 'expiresAt', 'revokedAt'])

/** The token and all tokens that it descends from. */
export const selectAncestors = statement('tokens.ancestors', {
  reason: 'recursive query',
  in: { id: text() },
  out: { id: text() },
  sql: (p) => `
    WITH RECURSIVE line AS (
      SELECT id, parent_id FROM token WHERE id = ${p.id}
      UNION SELECT t.id, t.parent_id FROM token t JOIN line ON t.id = line.parent_id)
    SELECT id FROM line`,
})

/** All live tokens that descend from one, by any number of steps: each behind its parent. */
export const selectDescendants = statement('tokens.descendants', {
  reason: 'recursive query',
  in: { id: text() },
  out: { id: text() },
  sql: (p) => `
    WITH RECURSIVE line AS (
      SELECT id, 0 AS depth FROM token WHERE id = ${p.id}
      UNION SELECT t.id, line.depth + 1 FROM token t JOIN line ON t.parent_id = line.id WHERE t.revoked_at IS NULL)
    SELECT id FROM line WHERE depth > 0 ORDER BY depth, id`,
})

/**
 * All tokens that end when one is revoked: its lineage and everything created by it, directly or not, and their present
 * children. With `later`, without the tokens that the lineage had before it.
 */
const line = (p: { id: string; later?: string }) => `
  line AS (
    SELECT t.id FROM token x CROSS JOIN LATERAL (
      SELECT id FROM token WHERE id = coalesce(x.lineage_id, x.id)
      UNION SELECT id FROM token WHERE lineage_id = coalesce(x.lineage_id, x.id)) t
    WHERE x.id = ${p.id} AND (t.id >= x.id OR NOT ${p.later ?? 'false'})
    UNION SELECT t.id FROM line CROSS JOIN LATERAL (
      SELECT id FROM token WHERE parent_id = line.id UNION ALL SELECT id FROM token WHERE creator_id = line.id) t)`

/** The live tokens that would end if a token were revoked, and with which rights. */
export const selectLine = statement('tokens.line', {
  reason: 'recursive query',
  in: { id: text() },
  out: rights,
  sql: (p) => `
    WITH RECURSIVE ${line(p)}
    SELECT ${selected(rights, 't')} FROM token t JOIN line USING (id)
    WHERE t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > now())`,
})

/** Revokes the tokens of a line; the named one only if `itself`. */
export const revokeLine = statement('tokens.revokeLine', {
  reason: 'recursive query',
  in: { id: text(), later: boolean(), itself: boolean(), now: timestamptz() },
  out: { id: text() },
  sql: (p) => `
    WITH RECURSIVE ${line(p)}
    UPDATE token t SET revoked_at = ${p.now} FROM line
    WHERE t.id = line.id AND t.revoked_at IS NULL AND (${p.itself} OR t.id <> ${p.id}) RETURNING t.id`,
})

/**
 * Withdraws open invitations to the roles that were sent with a token of the line (revoked or not), with one that such a
 * token replaced, or by the person, if given.
 */
export const withdrawInvitations = statement('tokens.withdrawInvitations', {
  reason: 'recursive query',
  in: { id: text(), userId: optional(text()), roles: textArray() },
  out: { id: text() },
  sql: (p) => `
    WITH RECURSIVE ${line({ id: p.id })},
    sender AS (SELECT id FROM line UNION SELECT t.replaces_id FROM token t JOIN sender USING (id))
    DELETE FROM invitation i WHERE i.account_id = (SELECT account_id FROM token WHERE id = ${p.id})
      AND i.accepted_at IS NULL AND i.role = ANY(${p.roles})
      AND (i.invited_by = ${p.userId} OR i.invited_by IN (SELECT id FROM sender))
    RETURNING i.id`,
})

/** Sets when tokens were last used, `times` in the order of `ids`; never moves a time back. */
export const updateLastUses = statement('tokens.last_uses', {
  reason: 'list as one parameter',
  in: { ids: textArray(), times: textArray() },
  out: { id: text() },
  sql: (p) => `
    UPDATE token t SET last_used_at = u.at::timestamptz
    FROM unnest(${p.ids}, ${p.times}) AS u(id, at)
    WHERE t.id = u.id AND (t.last_used_at IS NULL OR t.last_used_at < u.at::timestamptz) RETURNING t.id`,
})

/**
 * Which of the tokens are still accepted. One parameter for any number of tokens: Prisma has one for each, and so another
 * text to prepare for every number of open streams.
 */
export const selectLiveTokens = statement('tokens.live', {
  reason: 'list as one parameter',
  in: { ids: textArray() },
  out: rights,
  sql: (p) => `
    SELECT ${selected(rights, 't')}
    FROM token t JOIN account a ON a.id = t.account_id
    WHERE t.id = ANY(${p.ids}) AND a.suspended_at IS NULL
      AND (t.revoked_at IS NULL OR t.revoked_at > now()) AND (t.expires_at IS NULL OR t.expires_at > now())`,
})

/** The tokens of the hashes, in base64. One parameter for any number of them, as above. */
export const selectTokens = statement('tokens.by_hash', {
  reason: 'list as one parameter',
  in: { hashes: textArray() },
  out: {
    hash: text(),
    ...rights,
    ...accepted,
    suspendedAt: optional(timestamptz()),
    userId: optional(text()),
  },
  sql: (p) => `
    SELECT encode(t.hash, 'base64') AS hash, ${selected({ ...rights, ...accepted }, 't')},
      a.suspended_at AS "suspendedAt",
      CASE WHEN t.session_id IS NOT NULL THEN t.user_id END AS "userId"
    FROM token t JOIN account a ON a.id = t.account_id
    WHERE t.hash = ANY(ARRAY(SELECT decode(h, 'base64') FROM unnest(${p.hashes}) AS h))`,
})

/**
 * Deletes tokens that ended before a time and have neither children nor tokens they created: revoking them must still find
 * those. A chain goes from its end, batch by batch.
 */
export const deleteEndedTokens = statement('tokens.forget', {
  reason: 'subquery',
  in: { before: timestamptz(), limit: int4() },
  out: { id: text() },
  sql: (p) => `
    DELETE FROM token WHERE id IN (
      SELECT t.id FROM token t WHERE LEAST(t.revoked_at, t.expires_at) < ${p.before}
        AND NOT EXISTS (SELECT 1 FROM token c WHERE c.parent_id = t.id)
        AND NOT EXISTS (SELECT 1 FROM token c WHERE c.creator_id = t.id)
      ORDER BY LEAST(t.revoked_at, t.expires_at) LIMIT ${p.limit})
    RETURNING id`,
})

/**
 * Deletes revoked tokens of an account beyond its quota, a thousand at most, and withdraws the open invitations they sent.
 * Those that a live token came from stay, because whoever revokes one ends that token; then the newest, whose callers are
 * told. Returns the quota if more than that have to stay.
 */
export const forgetRevoked = statement('tokens.forgetRevoked', {
  reason: 'several writes in one statement',
  in: { accountId: text() },
  out: { max: int8() },
  sql: (p) => `
    WITH RECURSIVE source AS (
      SELECT id, parent_id, creator_id, lineage_id FROM token
      WHERE account_id = ${p.accountId} AND NOT hidden AND revoked_at IS NULL
      UNION SELECT t.id, t.parent_id, t.creator_id, t.lineage_id
      FROM source s JOIN token t ON t.id = ANY (ARRAY[s.parent_id, s.creator_id, s.lineage_id])),
    quota AS (SELECT account_limit(${p.accountId}, 'revokedTokens') AS max),
    surplus AS (
      SELECT t.id, s.id IS NOT NULL AS is_source FROM token t LEFT JOIN source s USING (id)
      WHERE t.account_id = ${p.accountId} AND NOT t.hidden AND t.revoked_at IS NOT NULL
        AND (SELECT max FROM quota) IS NOT NULL
      ORDER BY is_source DESC, t.revoked_at DESC OFFSET (SELECT max FROM quota)),
    forgotten AS (
      DELETE FROM token WHERE id IN (SELECT id FROM surplus WHERE NOT is_source LIMIT 1000) RETURNING id),
    withdrawn AS (
      DELETE FROM invitation WHERE account_id = ${p.accountId} AND accepted_at IS NULL
        AND invited_by IN (SELECT id FROM forgotten))
    SELECT max FROM quota WHERE EXISTS (SELECT 1 FROM surplus WHERE is_source)`,
})
