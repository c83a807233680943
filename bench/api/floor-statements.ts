// The SQL statements of the floor, prepared once per connection under these names.
import { Deployment } from '../../src/schemas/deployments.ts'
import { DnsRecord } from '../../src/schemas/dns-records.ts'
import { ProjectSettings } from '../../src/schemas/project-settings.ts'
import { Project } from '../../src/schemas/projects.ts'
import { columnsOf } from './floor-fields.ts'

const tokenByHash = `SELECT t.id, t.account_id AS "accountId", t.revoked_at AS "revokedAt",
    t.expires_at AS "expiresAt", a.suspended_at IS NOT NULL AS suspended
  FROM token t JOIN account a ON a.id = t.account_id WHERE t.hash = $1`

const projectByName = `SELECT id, name, repo, production_branch AS branch FROM project
  WHERE account_id = $1 AND name = $2`

/** The columns of each table that the API's schemas name. */
export type Columns = (table: string) => Set<string>

const projectPage = (of: Columns) => `SELECT ${columnsOf(Project, 'p', of('project'))},
    ${columnsOf(ProjectSettings, 'p', of('project'))}, p.label, p.pinned_deployment_id AS pinned
  FROM project p WHERE p.account_id = $1 ORDER BY p.name LIMIT $2`

const deploymentById = (
  of: Columns,
) => `SELECT ${columnsOf(Deployment, 'd', of('deployment'))}, p.name AS project, d.label,
    d.error_code AS "errorCode", d.error_message AS "errorMessage", d.stored_bytes AS "storedBytes",
    p.current_deployment_id IS NOT DISTINCT FROM d.id AS current
  FROM deployment d JOIN project p ON p.id = d.project_id WHERE d.id = $1 AND d.account_id = $2`

const insertDeployment = `WITH made AS (
    INSERT INTO deployment (id, account_id, project_id, state, ref, commit, production, label, region, source, created_at)
    SELECT $1, $9, p.id, 'BUILDING', $3, $4, $5, $6, 'local-1', 'api', $7 FROM project p WHERE p.id = $2 FOR KEY SHARE
    RETURNING id),
  logged AS (INSERT INTO event (id, account_id, project_id, type, actor, subject, data, created_at)
    SELECT $8, $9, $2, 'deployment.created', $10, id, $11, now() FROM made),
  queued AS (INSERT INTO job (kind, key, payload, account_id, urgent) SELECT 'build', id, $12::jsonb, $9, $5 FROM made)
  SELECT id FROM made`

// Like our API, this assigns nameservers while nobody else can claim the name; here only if nobody else has.
const insertDomain = `WITH source AS (
    SELECT p.id FROM project p WHERE p.account_id = $8 AND p.name = $2 FOR KEY SHARE),
  taken AS (
    SELECT 1 FROM domain d WHERE d.verified AND d.name = ANY($6::text[]) AND d.account_id <> $8
    UNION ALL SELECT 1 FROM domain_hold h WHERE h.name = ANY($6::text[]) AND h.account_id <> $8 AND h.until > now()),
  made AS (
    INSERT INTO domain (id, account_id, project_id, name, txt_value, nameservers, next_check_at, created_at, updated_at)
    SELECT $1, $8, source.id, $3, $4, $12, $5, $5, $5 FROM source
    WHERE NOT EXISTS (SELECT 1 FROM taken) AND lock_claims_if_known($3, $8, 0)
    ON CONFLICT DO NOTHING RETURNING id, project_id),
  logged AS (INSERT INTO event (id, account_id, project_id, type, actor, subject, data, created_at)
    SELECT $7, $8, project_id, 'domain.created', $9, $3, $10, now() FROM made),
  queued AS (INSERT INTO job (kind, key, payload) SELECT 'verify', id, $11::jsonb FROM made)
  SELECT made.id FROM source LEFT JOIN made ON true`

// The table's index and trigger refuse duplicates and conflicting records.
const insertRecord = `WITH zone AS (
    SELECT id, project_id FROM domain WHERE account_id = $10 AND name = $2 FOR NO KEY UPDATE),
  made AS (
    INSERT INTO dns_record (id, domain_id, type, name, value, ttl, comment, created_at, updated_at)
    SELECT $1, zone.id, $3, $4, $5, $6, $7, $8, $8 FROM zone ON CONFLICT DO NOTHING RETURNING id, domain_id),
  grown AS (UPDATE domain SET serial = serial + 1 WHERE id = (SELECT domain_id FROM made)),
  logged AS (INSERT INTO event (id, account_id, project_id, type, actor, subject, data, created_at)
    SELECT $9, $10, zone.project_id, 'dns.record.created', $11, made.id, $12, now() FROM made, zone)
  SELECT made.id FROM zone LEFT JOIN made ON true`

const recordPage = (of: Columns) => `SELECT ${columnsOf(DnsRecord, 'r', of('dns_record'))}, d.name AS domain
  FROM domain d, LATERAL (
    SELECT * FROM dns_record r WHERE r.domain_id = d.id AND (r.name, r.id) > ($3, $4)
    ORDER BY r.name, r.id LIMIT $5) r
  WHERE d.account_id = $1 AND d.name = $2 ORDER BY r.name, r.id`

const insertTicket = `WITH made AS (
    INSERT INTO ticket (id, account_id, subject, status, priority, created_at, updated_at)
    VALUES ($1, $8, $3, 'OPEN', $5, $6, $6) RETURNING id),
  said AS (INSERT INTO ticket_message (id, ticket_id, author, message, created_at)
    SELECT $2, id, 'customer', $4, $6 FROM made)
  INSERT INTO event (id, account_id, project_id, type, actor, subject, data, created_at)
    SELECT $7, $8, NULL, 'ticket.created', $9, id, $10, now() FROM made`

export const statementsOn = (columns: Columns) => ({
  tokenByHash,
  projectByName,
  projectPage: projectPage(columns),
  deploymentById: deploymentById(columns),
  insertDeployment,
  insertDomain,
  insertRecord,
  recordPage: recordPage(columns),
  insertTicket,
})
