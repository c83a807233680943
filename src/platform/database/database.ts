// The database: Prisma for models and transactions, a pool below it, and prepared statements for hot paths.
import { PrismaPg } from '@prisma/adapter-pg'
import pg from 'pg'
import { type Prisma, PrismaClient } from '../../generated/client.ts'
import { Fault } from '../errors.ts'
import { Pool, type PoolClass, type PoolLimits, poolFullCode } from './pool.ts'

/** The client, or the handle inside `db.$transaction(async (db) => …)`. Helpers accept both. */
export type Db = Prisma.TransactionClient

export type Database = PrismaClient

/** Where prepared statements run: the pool of a client, or the connection behind a handle of `onConnection`. */
const pools = new WeakMap<object, Pool | pg.ClientBase>()
const statementNames = new Map<string, string>()

// There are only a few hundred fixed texts, so each is prepared once per connection.
function statementName(text: string): string {
  let name = statementNames.get(text)
  if (name === undefined) {
    name = `s${statementNames.size}`
    statementNames.set(text, name)
  }
  return name
}

// Prisma passes each item of a list as a parameter, so each length is a new text: long lists aren't prepared.
const maxPreparedParameters = 50

function nameOfQuery({ sql, args }: { sql: string; args: unknown[] }): string {
  return args.length > maxPreparedParameters ? '' : statementName(sql)
}

const timestamptz = 1184
// PostgreSQL writes times as JavaScript reads them. The driver's own parser takes three times as long.
const readTimestamp = (text: string) => new Date(text)
const getTypeParser = ((oid: number, format: 'text') =>
  oid === timestamptz ? readTimestamp : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser

export type DatabaseOptions = { class?: PoolClass; limits?: Partial<PoolLimits> }

/** `options.class` decides the timeouts. */
export function openDatabase(url: string, size: number, options: DatabaseOptions = {}): Database {
  const pool = new Pool({ url, size, class: 'requests', ...options }, { types: { getTypeParser } })
  const adapter = new PrismaPg(pool, { statementNameGenerator: nameOfQuery })
  // The pool rejects work that waits too long, with a reason. A shorter limit here would hide that.
  const db = new PrismaClient({ adapter, transactionOptions: { maxWait: 30_000, timeout: 15_000 } })
  pools.set(db, pool)
  return db
}

/** How many connections of a client's pool are in use, and how much work is waiting. */
export function poolUsage(db: Database): Pool['usage'] {
  return (pools.get(db) as Pool).usage
}

export async function closeDatabase(db: Database): Promise<void> {
  await db.$disconnect()
  const pool = pools.get(db)
  if (pool instanceof Pool && !pool.ended) await pool.end()
}

/** Runs `work` on one connection, for prepared statements only. Without Prisma, session state ends with it. */
export async function onConnection<T>(db: Database, work: (connection: Db) => Promise<T>): Promise<T> {
  const client = await (pools.get(db) as Pool).connect()
  const connection = {} as Db
  pools.set(connection, client)
  try {
    const result = await work(connection)
    client.release()
    return result
  } catch (error) {
    // After an unexpected error, the connection may have open transactions or locks, so it is closed.
    client.release(!(error instanceof Fault))
    throw error
  }
}

/** The id of the PostgreSQL process that serves a handle of `onConnection`. */
export function backendOf(connection: Db): number {
  return (pools.get(connection) as pg.PoolClient & { processID: number }).processID
}

/** A connection outside the pool: `db` for statements, `client` for what only the driver can do. */
export type Connection = { db: Db; client: pg.Client; close(): Promise<void> }

// The time zone and date style make times in text independent of the server's settings.
const settings = `SET statement_timeout = 0; SET lock_timeout = 0; SET idle_in_transaction_session_timeout = 0;
  SET idle_session_timeout = 0; SET timezone = 'UTC'; SET datestyle = 'ISO'`

/** Opens a connection without timeouts, for work of any length. */
export async function connectAlone(url: string): Promise<Connection> {
  const client = new pg.Client({ connectionString: url, keepAlive: true })
  // Work on a broken connection fails with the reason. Without a listener, the error would end the process.
  client.on('error', () => {})
  await client.connect()
  await client.query(settings)
  const db = {} as Db
  pools.set(db, client)
  return { db, client, close: () => client.end() }
}

/** Runs a transaction on a handle of `onConnection` or `connectAlone`. */
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
    // Any other error closes the connection, which ends the transaction.
    if (error instanceof Fault) await client.query('ROLLBACK')
    throw error
  }
}

/**
 * Runs a statement with a fixed text. Outside a transaction it goes to the pool as a prepared statement, because Prisma's
 * raw queries cost three times as much (195 µs instead of 70, measured). Inside one it uses the transaction's handle.
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

/** Runs `work` in a transaction, or in the current one if `db` is its handle. */
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

/** The driver's error, as Prisma wraps it. */
type Original = { kind?: string; originalCode?: string; originalMessage?: string; detail?: string }

type AnyError = {
  name?: string
  code?: string
  constraint?: string
  detail?: string
  message?: string
  cause?: unknown
  errors?: unknown[]
  meta?: { driverAdapterError?: { cause?: Original } }
}

/** The driver's error inside a Prisma error, or of a transaction that couldn't be committed. */
function originalOf(thrown: AnyError | null | undefined): Original | undefined {
  return thrown?.name === 'DriverAdapterError' ? (thrown.cause as Original) : thrown?.meta?.driverAdapterError?.cause
}

/** The SQLSTATE of a PostgreSQL error, or the code of a Prisma, system or pool error. */
function codeOf(error: unknown): string | undefined {
  const thrown = error as AnyError
  return originalOf(thrown)?.originalCode ?? thrown?.code
}

/** The constraint that refused a write, through Prisma or the pool; null for other errors. */
export function violation(error: unknown): Violation | null {
  const thrown = error as AnyError
  const original = originalOf(thrown)
  const kind = violationKinds[codeOf(error) ?? '']
  if (!kind) return null
  const message = original?.originalMessage ?? thrown.message ?? ''
  const constraint = thrown.constraint ?? /constraint "([^"]+)"/.exec(message)?.[1] ?? message
  return { kind, constraint, detail: thrown.detail ?? original?.detail ?? '' }
}

export type RefusedQuota = { limit: string; used: number; max: number }

/** The quota that refused a write, through Prisma or the pool; null for other errors. */
export function refusedQuota(error: unknown): RefusedQuota | null {
  if (codeOf(error) !== 'BQ001') return null
  const thrown = error as AnyError
  return JSON.parse(originalOf(thrown)?.detail ?? thrown.detail ?? 'null')
}

/** The message of an exception that our own SQL functions raised with this SQLSTATE; null for other errors. */
export function raised(error: unknown, state: string): string | null {
  if (codeOf(error) !== state) return null
  const thrown = error as AnyError
  return originalOf(thrown)?.originalMessage ?? thrown.message ?? ''
}

/** Whether work got no connection because all are in use. */
export function isPoolFull(error: unknown): boolean {
  return codeOf(error) === poolFullCode
}

// A statement or lock timed out, or PostgreSQL ended one of two deadlocked transactions.
const timedOut = new Set(['57014', '55P03', '40P01', '40001', 'P2034'])

/** Whether work was canceled because it took too long or waited too long. Nothing was stored. */
export function isTimedOut(error: unknown): boolean {
  const code = codeOf(error) ?? ''
  return timedOut.has(code) || (code === 'P2028' && /expired transaction/.test((error as AnyError).message ?? ''))
}

// Connection errors, resources (including a full disk), shutdown, system errors, idle transactions, read-only standbys.
const lostState = /^(08|53|57P|58)...?$|^25P03$|^25006$/
const lostPrismaCodes = new Set(['P1001', 'P1002', 'P1008', 'P1017', 'P1018', 'P2024', 'P2028', 'P2037'])
const lostKinds = new Set(['DatabaseNotReachable', 'ConnectionClosed', 'SocketTimeout', 'TransactionAlreadyClosed'])
const lostMessage =
  /ECONNREFUSED|ECONNRESET|EPIPE|ENOENT|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN|Connection terminated|not queryable|timeout exceeded|timeout expired|connection timeout/i

/** Whether the database refuses all changes, like a standby. */
export function isReadOnly(error: unknown): boolean {
  return codeOf(error) === '25006'
}

/** Whether an error means that the database is unavailable, rather than that the statement failed. */
export function isDatabaseLost(error: unknown): boolean {
  const thrown = error as AnyError
  if (!thrown || typeof thrown !== 'object') return false
  if (thrown.errors?.some(isDatabaseLost)) return true
  if (isTimedOut(error)) return false
  const code = codeOf(error) ?? ''
  if (lostState.test(code) || lostPrismaCodes.has(code)) return true
  return lostKinds.has(originalOf(thrown)?.kind ?? '') || lostMessage.test(`${code} ${thrown.message ?? ''}`)
}
