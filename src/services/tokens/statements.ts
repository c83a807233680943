// Tokens in SQL.
import { boolean, int4, jsonb, optional, statement, text, textArray, timestamptz } from '../../platform/statement.ts'
import type { Scope } from './actor.ts'
import type { ZonePart } from './zone-parts.ts'

const zonePartsOut = optional(jsonb<readonly ZonePart[]>())

/** The token and all tokens that it descends from. */
export const selectAncestors = statement('tokens.ancestors', {
  reason: 'not in Prisma',
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
  reason: 'not in Prisma',
  in: { id: text() },
  out: { id: text() },
  sql: (p) => `
    WITH RECURSIVE line AS (
      SELECT id, 0 AS depth FROM token WHERE id = ${p.id}
      UNION SELECT t.id, line.depth + 1 FROM token t JOIN line ON t.parent_id = line.id WHERE t.revoked_at IS NULL)
    SELECT id FROM line WHERE depth > 0 ORDER BY depth, id`,
})

/** Revokes all tokens that descend from one, by any number of steps, and that one too if `itself`. */
export const revokeLine = statement('tokens.revokeLine', {
  reason: 'not in Prisma',
  in: { id: text(), itself: boolean(), now: timestamptz() },
  out: { id: text() },
  sql: (p) => `
    WITH RECURSIVE line AS (
      SELECT id FROM token WHERE id = ${p.id}
      UNION SELECT t.id FROM token t JOIN line ON t.parent_id = line.id)
    UPDATE token t SET revoked_at = ${p.now} FROM line
    WHERE t.id = line.id AND t.revoked_at IS NULL AND (${p.itself} OR t.id <> ${p.id}) RETURNING t.id`,
})

/**
 * Takes back invitations to the roles that were sent with a token or one that descends from it, ended ones too, and by
 * the person where one is named.
 */
export const withdrawInvitations = statement('tokens.withdrawInvitations', {
  reason: 'not in Prisma',
  in: { id: text(), userId: optional(text()), roles: textArray() },
  out: { id: text() },
  sql: (p) => `
    WITH RECURSIVE line AS (
      SELECT id, account_id FROM token WHERE id = ${p.id}
      UNION SELECT t.id, t.account_id FROM token t JOIN line ON t.parent_id = line.id)
    DELETE FROM invitation i WHERE i.account_id IN (SELECT account_id FROM line)
      AND i.accepted_at IS NULL AND i.role = ANY(${p.roles})
      AND (i.invited_by = ${p.userId} OR i.invited_by IN (SELECT id FROM line))
    RETURNING i.id`,
})

/** One time of use for each token, `times` in the order of `ids`; a later time that is there already stays. */
export const updateLastUses = statement('tokens.last_uses', {
  reason: 'not in Prisma',
  in: { ids: textArray(), times: textArray() },
  out: { id: text() },
  sql: (p) => `
    UPDATE token t SET last_used_at = u.at::timestamptz
    FROM unnest(${p.ids}, ${p.times}) AS u(id, at)
    WHERE t.id = u.id AND (t.last_used_at IS NULL OR t.last_used_at < u.at::timestamptz) RETURNING t.id`,
})

/**
 * Which of the tokens are still accepted. One parameter for any number of them: Prisma has one for each, and so
 * another text to prepare for every number of open streams.
 */
export const selectLiveTokens = statement('tokens.live', {
  reason: 'not in Prisma',
  in: { ids: textArray() },
  out: { id: text(), scopes: textArray<Scope>(), projectIds: textArray(), zoneParts: zonePartsOut },
  sql: (p) => `
    SELECT t.id, t.scopes, t.project_ids AS "projectIds", t.zone_parts AS "zoneParts"
    FROM token t JOIN account a ON a.id = t.account_id
    WHERE t.id = ANY(${p.ids}) AND a.suspended_at IS NULL
      AND (t.revoked_at IS NULL OR t.revoked_at > now()) AND (t.expires_at IS NULL OR t.expires_at > now())`,
})

/** The tokens of the hashes, in base64. One parameter for any number of them, as above. */
export const selectTokens = statement('tokens.by_hash', {
  reason: 'not in Prisma',
  in: { hashes: textArray() },
  out: {
    hash: text(),
    id: text(),
    accountId: text(),
    scopes: textArray<Scope>(),
    projectIds: textArray(),
    zoneParts: zonePartsOut,
    expiresAt: optional(timestamptz()),
    revokedAt: optional(timestamptz()),
    suspendedAt: optional(timestamptz()),
    userId: optional(text()),
  },
  sql: (p) => `
    SELECT encode(t.hash, 'base64') AS hash, t.id, t.account_id AS "accountId", t.scopes, t.project_ids AS "projectIds",
      t.zone_parts AS "zoneParts", t.expires_at AS "expiresAt", t.revoked_at AS "revokedAt", a.suspended_at AS "suspendedAt",
      CASE WHEN t.session_id IS NOT NULL THEN t.user_id END AS "userId"
    FROM token t JOIN account a ON a.id = t.account_id
    WHERE t.hash = ANY(ARRAY(SELECT decode(h, 'base64') FROM unnest(${p.hashes}) AS h))`,
})

/**
 * Those that nobody made another with, or whose children are gone: a parent takes its children along. Those of a dead
 * token are dead too, and go in an earlier batch.
 */
export const deleteEndedTokens = statement('tokens.forget', {
  reason: 'not in Prisma',
  in: { before: timestamptz(), limit: int4() },
  out: { id: text() },
  sql: (p) => `
    DELETE FROM token WHERE id IN (
      SELECT t.id FROM token t WHERE LEAST(t.revoked_at, t.expires_at) < ${p.before}
        AND NOT EXISTS (SELECT 1 FROM token c WHERE c.parent_id = t.id)
      ORDER BY LEAST(t.revoked_at, t.expires_at) LIMIT ${p.limit})
    RETURNING id`,
})
