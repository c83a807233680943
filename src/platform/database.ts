// The database: Prisma for models and transactions, one pool beneath it, and prepared statements for the hot paths.
import { PrismaPg } from '@prisma/adapter-pg'
import pg from 'pg'
import { type Prisma, PrismaClient } from '../generated/client.ts'
import { Fault } from './errors.ts'

/** The client itself, or the handle inside `db.$transaction(async (db) => …)`: helpers take either. */
export type Db = Prisma.TransactionClient

export type Database = PrismaClient

/** Where prepared statements go: the pool of a client, or the one connection of a handle of `onConnection`. */
const pools = new WeakMap<object, pg.Pool | pg.PoolClient>()
const statementNames = new Map<string, string>()

// Statements have fixed texts, some hundred at most, so each is prepared once per connection.
function statementName(text: string): string {
  let name = statementNames.get(text)
  if (name === undefined) {
    name = `s${statementNames.size}`
    statementNames.set(text, name)
  }
  return name
}

// Prisma has a parameter for each item of a list, so every length is another text: long lists are not prepared.
const highestPreparedParameters = 50

function nameOfQuery({ sql, args }: { sql: string; args: unknown[] }): string {
  return args.length > highestPreparedParameters ? '' : statementName(sql)
}

const timestamptz = 1184
// PostgreSQL writes times as JavaScript reads them; the driver's own parser takes three times as long.
const readTimestamp = (text: string) => new Date(text)
const getTypeParser = ((oid: number, format: 'text') =>
  oid === timestamptz ? readTimestamp : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser

export function openDatabase(url: string, poolSize: number): Database {
  const pool = new pg.Pool({
    connectionString: url,
    max: poolSize,
    connectionTimeoutMillis: 5_000,
    idleTimeoutMillis: 30_000,
    // By then the caller has long given up.
    statement_timeout: 15_000,
    types: { getTypeParser },
  })
  // An idle connection that breaks is replaced by the pool; without a listener it would end the process.
  pool.on('error', () => {})
  const adapter = new PrismaPg(pool, { statementNameGenerator: nameOfQuery })
  const db = new PrismaClient({ adapter, transactionOptions: { maxWait: 5_000, timeout: 15_000 } })
  pools.set(db, pool)
  return db
}

/** Whether the database answers, and has been migrated. */
export function databaseReadiness(db: Database): () => Promise<string | null> {
  return () =>
    db.job.findFirst({ select: { id: true } }).then(
      () => null,
      () => 'The database does not answer.',
    )
}

export async function closeDatabase(db: Database): Promise<void> {
  await db.$disconnect()
  const pool = pools.get(db)
  if (pool instanceof pg.Pool && !pool.ended) await pool.end()
}

/** Runs `work` on one connection for statements alone, without Prisma: what belongs to a session ends with it. */
export async function onConnection<T>(db: Database, work: (connection: Db) => Promise<T>): Promise<T> {
  const client = await (pools.get(db) as pg.Pool).connect()
  const connection = {} as Db
  pools.set(connection, client)
  try {
    const result = await work(connection)
    client.release()
    return result
  } catch (error) {
    // After an unexpected error nobody knows what is left open or locked on the connection, so it is closed.
    client.release(!(error instanceof Fault))
    throw error
  }
}

/** A transaction on a handle of `onConnection`. */
export async function transactionOn<T>(
  connection: Db,
  work: () => Promise<T>,
  mode: '' | 'ISOLATION LEVEL REPEATABLE READ READ ONLY' = '',
): Promise<T> {
  const client = pools.get(connection)!
  await client.query(`BEGIN ${mode}`)
  try {
    const result = await work()
    await client.query('COMMIT')
    return result
  } catch (error) {
    // Any other error closes the connection, and ends the transaction by that.
    if (error instanceof Fault) await client.query('ROLLBACK')
    throw error
  }
}

/**
 * Rows of a statement whose text is fixed. Outside a transaction it goes to the pool as a prepared statement, because
 * Prisma's raw queries cost three times as much (195 µs against 70 measured); inside one it goes through its handle.
 */
export async function queryPrepared(
  db: Db,
  name: string,
  text: string,
  values: unknown[],
): Promise<Record<string, unknown>[]> {
  const pool = pools.get(db)
  if (!pool) return db.$queryRawUnsafe(text, ...values)
  return (await pool.query({ name, text, values })).rows
}

/** Runs `work` in a transaction, in the one already open if `db` is its handle. */
export async function inTransaction<T>(db: Db, work: (db: Db) => Promise<T>): Promise<T> {
  // A transaction handle also has $transaction (savepoints); only the client itself has $connect.
  if ('$connect' in db) return (db as unknown as Database).$transaction(work)
  return work(db)
}

export type Violation = { kind: 'unique' | 'foreign' | 'exclusion'; constraint: string; detail: string }

const violationKinds: Record<string, Violation['kind']> = {
  '23505': 'unique',
  '23503': 'foreign',
  '23P01': 'exclusion',
}

type AnyError = {
  code?: string
  constraint?: string
  detail?: string
  message?: string
  /** Where Prisma keeps the driver's error. */
  meta?: { driverAdapterError?: { cause?: { originalCode?: string; originalMessage?: string; detail?: string } } }
}

/** Which constraint refused a write, through Prisma or the pool; null for every other error. */
export function violation(error: unknown): Violation | null {
  const thrown = error as AnyError
  const original = thrown?.meta?.driverAdapterError?.cause
  const state = original?.originalCode ?? thrown?.code
  const kind = state === undefined ? undefined : violationKinds[state]
  if (!kind) return null
  const message = original?.originalMessage ?? thrown.message ?? ''
  const constraint = thrown.constraint ?? /constraint "([^"]+)"/.exec(message)?.[1] ?? message
  return { kind, constraint, detail: thrown.detail ?? original?.detail ?? '' }
}

export type RefusedQuota = { limit: string; used: number; max: number }

/** Which quota refused a write, through Prisma or the pool; null for every other error. */
export function refusedQuota(error: unknown): RefusedQuota | null {
  const thrown = error as AnyError
  const original = thrown?.meta?.driverAdapterError?.cause
  if ((original?.originalCode ?? thrown?.code) !== 'BQ001') return null
  return JSON.parse(original?.detail ?? thrown.detail ?? 'null')
}

/** The message of an exception that a function of ours raised with this SQLSTATE; null for every other error. */
export function raised(error: unknown, state: string): string | null {
  const thrown = error as AnyError
  const original = thrown?.meta?.driverAdapterError?.cause
  if ((original?.originalCode ?? thrown?.code) !== state) return null
  return original?.originalMessage ?? thrown.message ?? ''
}

/** Whether a statement was ended because it took too long or waited too long for a lock. */
export function isTimedOut(error: unknown): boolean {
  return raised(error, '57014') !== null || raised(error, '55P03') !== null
}

const lostCodes = new Set(['57P01', '57P02', '57P03', '08000', '08001', '08003', '08006', '53300', '25P03'])
const lostPrismaCodes = new Set(['P1001', 'P1002', 'P1008', 'P1017', 'P2024', 'P2028', 'P2037'])
const lostNetwork =
  /ECONNREFUSED|ECONNRESET|EPIPE|ENOENT|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN|Connection terminated|timeout exceeded|timeout expired|connection timeout/i

/** Whether an error means that the database is unavailable, as opposed to an error of the statement. */
export function isDatabaseLost(error: unknown): boolean {
  const thrown = error as AnyError & { errors?: unknown[] }
  if (!thrown || typeof thrown !== 'object') return false
  if (thrown.errors?.some(isDatabaseLost)) return true
  const code = thrown.meta?.driverAdapterError?.cause?.originalCode ?? thrown.code
  if (code && (lostCodes.has(code) || lostPrismaCodes.has(code))) return true
  return lostNetwork.test(`${code ?? ''} ${thrown.message ?? ''}`)
}
