// Typed SQL, where Prisma's model API isn't used: each statement declares its parameters and columns, and a test compares
// both with PostgreSQL's own description.
import { type Db, queryPrepared } from './database.ts'

/** What PostgreSQL can do and Prisma's model API can't, or only by more statements. */
type MissingInPrisma =
  | 'advisory lock'
  | 'aggregate with a condition'
  | 'clock of the database'
  | 'comparison of rows'
  | 'connection without Prisma'
  | 'expression of columns'
  | 'full-text search'
  | 'function of the database'
  | 'INSERT … SELECT'
  | 'join in one statement'
  | 'lateral join'
  | 'list as one parameter'
  | 'literal for a partial index'
  | 'ON CONFLICT … WHERE'
  | 'recursive query'
  | 'row lock'
  | 'sequence'
  | 'several writes in one statement'
  | 'SKIP LOCKED'
  | 'subquery'
  | 'system catalog'
  | 'window function'

/** Why a statement doesn't use Prisma's model API. */
export type Reason = 'change with its event and job' | 'lease' | 'snapshot for an engine' | 'hot read' | MissingInPrisma

/** A PostgreSQL type and its TypeScript equivalent. */
export type SqlType<T> = {
  /** As PostgreSQL writes it. */
  readonly name: string
  readonly nullable: boolean
  encode?(value: T): unknown
  /** Converts a value if Prisma and the pool return different types, or neither returns the declared one. */
  decode?(value: unknown): T
}

export const plain = <T>(name: string): SqlType<T> => ({ name, nullable: false })

export const text = <T extends string = string>() => plain<T>('text')
export const int4 = () => plain<number>('integer')
export const boolean = () => plain<boolean>('boolean')
export const timestamptz = () => plain<Date>('timestamp with time zone')
export const textArray = <T extends string = string>() => plain<readonly T[]>('text[]')
export const int4Array = () => plain<readonly number[]>('integer[]')
export const byteaArray = () => plain<readonly Uint8Array[]>('bytea[]')
export const booleanArray = () => plain<readonly boolean[]>('boolean[]')
/** A number that may not fit into a double, so it is a string in TypeScript. */
export const int8 = (): SqlType<string> => ({ name: 'bigint', nullable: false, decode: String })
export const bytea = (): SqlType<Uint8Array> => ({ name: 'bytea', nullable: false })
/** JSON that another thread has already serialized, for parameters that accept it. */
export class JsonText {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

export const asJson = <T>(name: string): SqlType<T> => ({
  name,
  nullable: false,
  encode: (value) => (value instanceof JsonText ? value.text : JSON.stringify(value)),
})
export const json = <T>() => asJson<T>('json')
export const jsonb = <T>() => asJson<T>('jsonb')

export function optional<T>(type: SqlType<T>): SqlType<T | null> {
  const { encode, decode } = type
  return {
    name: type.name,
    nullable: true,
    ...(encode && { encode: (value) => (value === null ? null : encode(value)) }),
    ...(decode && { decode: (value) => (value === null ? null : decode(value)) }),
  }
}

type AnyType = Pick<SqlType<unknown>, 'name' | 'nullable'>
type Types = Record<string, AnyType>
type ValueOf<S> = S extends SqlType<infer T> ? T : never
export type ValuesOf<S> = { [K in keyof S]: ValueOf<S[K]> }

export type Definition<P, R> = {
  reason: Reason
  /** Parameters by name. */
  in: P
  /** Columns by name, in the order of the statement. */
  out: R
  /** Receives each parameter as a placeholder, such as `$1::text`. */
  sql(parameter: { [K in keyof P]: string }): string
}

export type Statement<P, R> = {
  (db: Db, values: ValuesOf<P>): Promise<ValuesOf<R>[]>
  readonly definition: { name: string; text: string; reason: Reason; in: Types; out: Types }
}

/** All statements by name, for the test that prepares them. */
export const statements = new Map<string, Statement<unknown, unknown>['definition']>()

export function statement<P extends Types, R extends Types>(
  name: string,
  definition: Definition<P, R>,
): Statement<P, R> {
  if (statements.has(name)) throw new Error(`Two statements are named ${name}.`)
  const inputs = Object.entries(definition.in) as [string, SqlType<unknown>][]
  const outputs = Object.entries(definition.out) as [string, SqlType<unknown>][]
  const places = inputs.map(([key, type], index) => [key, `$${index + 1}::${type.name}`])
  const sql = definition.sql(Object.fromEntries(places))
  const decoded = outputs.filter(([, type]) => type.decode)

  async function run(db: Db, values: ValuesOf<P>): Promise<ValuesOf<R>[]> {
    const given = values as Record<string, unknown>
    const encoded = inputs.map(([key, type]) => (type.encode ? type.encode(given[key]) : given[key]))
    const rows = await queryPrepared(db, name, sql, encoded)
    if (decoded.length > 0) {
      for (const row of rows) for (const [key, type] of decoded) row[key] = type.decode!(row[key])
    }
    return rows as ValuesOf<R>[]
  }
  const described = { name, text: sql, reason: definition.reason, in: definition.in, out: definition.out }
  statements.set(name, described)
  return Object.assign(run, { definition: described })
}
