// SQL of backups: what the database consists of, the copying of its tables, and the lock that keeps artifacts in place.
import { boolean, int4, int8, statement, text, textArray } from '../../platform/database/statement.ts'

/** Held shared by a backup; whoever removes artifacts that a backup may need takes it exclusively. */
const artifactsLock = `hashtextextended('berth artifacts', 0)`

export const lockArtifacts = statement('backups.lockArtifacts', {
  reason: 'advisory lock',
  in: {},
  out: { held: boolean() },
  sql: () => `SELECT true AS held FROM pg_advisory_lock_shared(${artifactsLock})`,
})

/** For the connection of a backup: false if another one is under way. */
export const acquireBackupLock = statement('backups.beOnly', {
  reason: 'lease',
  in: {},
  out: { only: boolean() },
  sql: () => `SELECT pg_try_advisory_lock(hashtextextended('berth backup', 0)) AS only`,
})

const ofThisSchema = `c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
  AND NOT EXISTS (SELECT 1 FROM pg_depend d
    WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')`

/** Whether nobody has made a table yet. */
export const isEmpty = statement('backups.isEmpty', {
  reason: 'system catalog',
  in: {},
  out: { empty: boolean() },
  sql: () => `SELECT NOT EXISTS (SELECT 1 FROM pg_class c WHERE ${ofThisSchema}) AS empty`,
})

/**
 * Every table with the columns that are written and the tables that its rows refer to; but not that of migrations, nor
 * what is unlogged, which is of the moment.
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

/** Those that gave a number out. A sequence belongs to no snapshot: what is read is never behind the rows. */
export const readSequences = statement('backups.sequences', {
  reason: 'system catalog',
  in: {},
  out: { name: text(), value: int8() },
  sql: () => `
    SELECT sequencename::text AS name, last_value AS value FROM pg_sequences
    WHERE schemaname = current_schema() AND last_value IS NOT NULL ORDER BY 1`,
})

/** A sequence that is not there belongs to a table that is not ours. */
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

/** Deployments whose files a visitor may ask for. Here and not by Prisma, because it has to be of the same snapshot. */
export const readReady = statement('backups.ready', {
  reason: 'connection without Prisma',
  in: {},
  out: { id: text() },
  sql: () => `SELECT id FROM deployment WHERE state = 'READY' ORDER BY id`,
})

/**
 * What deployments without git are built from, and what was uploaded for the next one; behind the given content. Of
 * the same snapshot, too.
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

// The following name tables and columns, which no parameter can.

const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`
const list = (names: readonly string[]) => names.map(quoted).join(', ')

export type Table = { name: string; columns: readonly string[] }

/** So that no migration changes one of them before its turn comes. */
export const lockTables = (tables: readonly Table[]) =>
  `LOCK TABLE ${list(tables.map(({ name }) => name))} IN ACCESS SHARE MODE`

/** A query, because a partitioned table cannot be copied by its name. */
export const copyOut = ({ name, columns }: Table) => `COPY (SELECT ${list(columns)} FROM ${quoted(name)}) TO STDOUT`

export const copyIn = ({ name, columns }: Table) => `COPY ${quoted(name)} (${list(columns)}) FROM STDIN`

/** What a migration itself wrote is among the rows of the archive. */
export const emptyTables = (names: readonly string[]) => `TRUNCATE ${list(names)}`

/** Those of constraints stay: they need a superuser, and rows come in an order that they accept. */
export const setTriggers = (name: string, enabled: boolean) =>
  `ALTER TABLE ${quoted(name)} ${enabled ? 'ENABLE' : 'DISABLE'} TRIGGER USER`

export const createPartition = ({ name, parent, bound }: { name: string; parent: string; bound: string }) =>
  `CREATE TABLE ${quoted(name)} PARTITION OF ${quoted(parent)} ${bound}`

export const dropTable = (name: string) => `DROP TABLE ${quoted(name)}`

/** Until the database has looked at its rows, it plans as if there were none. */
export const analyzeTables = (tables: readonly Table[]) => `ANALYZE ${list(tables.map(({ name }) => name))}`
