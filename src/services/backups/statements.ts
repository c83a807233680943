// SQL statements of backups: the layout of the database, copying tables, and locks.
import { boolean, int4, int8, statement, text, textArray } from '../../platform/database/statement.ts'

/** A backup holds it shared; deleting artifacts that a backup may need takes it exclusively. */
const artifactsLock = `hashtextextended('berth artifacts', 0)`

export const lockArtifacts = statement('backups.lockArtifacts', {
  reason: 'not in Prisma',
  in: {},
  out: { held: boolean() },
  sql: () => `SELECT true AS held FROM pg_advisory_lock_shared(${artifactsLock})`,
})

/** Returns false if another backup is in progress. */
export const acquireBackupLock = statement('backups.beOnly', {
  reason: 'lease',
  in: {},
  out: { only: boolean() },
  sql: () => `SELECT pg_try_advisory_lock(hashtextextended('berth backup', 0)) AS only`,
})

const ofThisSchema = `c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
  AND NOT EXISTS (SELECT 1 FROM pg_depend d
    WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')`

/** Whether the database has no tables. */
export const isEmpty = statement('backups.isEmpty', {
  reason: 'system catalog',
  in: {},
  out: { empty: boolean() },
  sql: () => `SELECT NOT EXISTS (SELECT 1 FROM pg_class c WHERE ${ofThisSchema}) AS empty`,
})

/**
 * Every table with its stored columns and the tables that it references, except the migrations table and unlogged
 * tables, which hold transient data.
 */
export const readTables = statement('backups.tables', {
  reason: 'system catalog',
  in: {},
  out: { name: text(), columns: textArray(), needs: textArray() },
  sql: () => `
    SELECT c.relname::text AS name,
      ARRAY(SELECT a.attname::text FROM pg_attribute a
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' ORDER BY a.attnum) AS columns,
      ARRAY(SELECT DISTINCT r.relname::text FROM pg_constraint f JOIN pg_class r ON r.oid = f.confrelid
        WHERE f.conrelid = c.oid AND f.contype = 'f' AND f.confrelid <> c.oid) AS needs
    FROM pg_class c WHERE ${ofThisSchema} AND NOT c.relispartition AND c.relname <> '_prisma_migrations'
      AND c.relpersistence = 'p' ORDER BY 1`,
})

export const readPartitions = statement('backups.partitions', {
  reason: 'system catalog',
  in: {},
  out: { name: text(), parent: text(), bound: text() },
  sql: () => `
    SELECT c.relname::text AS name, p.relname::text AS parent, pg_get_expr(c.relpartbound, c.oid) AS bound
    FROM pg_class c JOIN pg_inherits i ON i.inhrelid = c.oid JOIN pg_class p ON p.oid = i.inhparent
    WHERE ${ofThisSchema} AND c.relispartition ORDER BY 1`,
})

/** Sequences in use. They are not part of the snapshot, but their values are never behind its rows. */
export const readSequences = statement('backups.sequences', {
  reason: 'system catalog',
  in: {},
  out: { name: text(), value: int8() },
  sql: () => `
    SELECT sequencename::text AS name, last_value AS value FROM pg_sequences
    WHERE schemaname = current_schema() AND last_value IS NOT NULL ORDER BY 1`,
})

/** Has no effect on a missing sequence, which belongs to a table that is not ours. */
export const setSequence = statement('backups.setSequence', {
  reason: 'system catalog',
  in: { name: text(), value: int8() },
  out: { value: int8() },
  sql: (p) => `
    SELECT setval(quote_ident(sequencename)::regclass, ${p.value}) AS value FROM pg_sequences
    WHERE schemaname = current_schema() AND sequencename::text = ${p.name}`,
})

/** Functions are no part of a backup: a restore applies those of its own version. */
export const readMigrations = statement('backups.migrations', {
  reason: 'system catalog',
  in: {},
  out: { name: text(), checksum: text() },
  sql: () => `
    SELECT migration_name::text AS name, checksum::text AS checksum FROM _prisma_migrations
    WHERE finished_at IS NOT NULL AND NOT starts_with(migration_name, 'functions/') ORDER BY 1`,
})

/** Deployments whose files visitors can request. Not through Prisma, because it must read the same snapshot. */
export const readReady = statement('backups.ready', {
  reason: 'connection without Prisma',
  in: {},
  out: { id: text() },
  sql: () => `SELECT id FROM deployment WHERE state = 'READY' ORDER BY id`,
})

/**
 * Sources of deployments without git and uploads for future ones, after the given content. It must read the same
 * snapshot too.
 */
export const readUploadedContents = statement('backups.uploadedContents', {
  reason: 'connection without Prisma',
  in: { after: text(), limit: int4() },
  out: { sha256: text(), size: int8() },
  sql: (p) => `
    SELECT DISTINCT ON (sha256) sha256, size FROM (
      (SELECT DISTINCT ON (sha256) sha256, size FROM source_file
        WHERE present AND sha256 > ${p.after} ORDER BY sha256 LIMIT ${p.limit})
      UNION ALL
      (SELECT DISTINCT ON (sha256) sha256, size FROM upload
        WHERE complete AND expires_at > now() AND sha256 > ${p.after} ORDER BY sha256 LIMIT ${p.limit})) needed
    ORDER BY sha256 LIMIT ${p.limit}`,
})

// The statements below contain names of tables and columns, which can't be parameters.

const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`
const list = (names: readonly string[]) => names.map(quoted).join(', ')

export type Table = { name: string; columns: readonly string[] }

/** Keeps migrations from changing a table before it is copied. */
export const lockTables = (tables: readonly Table[]) =>
  `LOCK TABLE ${list(tables.map(({ name }) => name))} IN ACCESS SHARE MODE`

/** Copies a query, because COPY does not accept a partitioned table. */
export const copyOut = ({ name, columns }: Table) => `COPY (SELECT ${list(columns)} FROM ${quoted(name)}) TO STDOUT`

export const copyIn = ({ name, columns }: Table) => `COPY ${quoted(name)} (${list(columns)}) FROM STDIN`

/** Deletes rows that migrations wrote, because the archive contains them too. */
export const emptyTables = (names: readonly string[]) => `TRUNCATE ${list(names)}`

/** Constraint triggers stay enabled: disabling them needs a superuser, and the order of rows satisfies them. */
export const setTriggers = (name: string, enabled: boolean) =>
  `ALTER TABLE ${quoted(name)} ${enabled ? 'ENABLE' : 'DISABLE'} TRIGGER USER`

export const createPartition = ({ name, parent, bound }: { name: string; parent: string; bound: string }) =>
  `CREATE TABLE ${quoted(name)} PARTITION OF ${quoted(parent)} ${bound}`

export const dropTable = (name: string) => `DROP TABLE ${quoted(name)}`

/** Without statistics, the planner would treat the tables as empty. */
export const analyzeTables = (tables: readonly Table[]) => `ANALYZE ${list(tables.map(({ name }) => name))}`
