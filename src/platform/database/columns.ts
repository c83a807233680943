// The columns of models, from which statements derive their lists: what `prisma generate` writes is their only description.
import type { Prisma } from '../../generated/client.ts'
import { columns } from '../../generated/columns.ts'
import { asJson, int8, optional, plain, type SqlType } from './statement.ts'

type Models = Prisma.TypeMap['model']
type Fields<M extends keyof Models> = Models[M]['payload']['scalars']
/** What a statement takes and returns: it has no bigint. */
type Read<T> = T extends bigint ? string : T extends Uint8Array ? Uint8Array : T

export type Column<T> = SqlType<T> & { readonly column: string }
type AnyColumns = Record<string, { readonly name: string; readonly column: string }>
export type Places<C> = { [K in keyof C]: string }

function typeOf({ column, type, nullable }: { column: string; type: string; nullable: boolean }) {
  const stored: SqlType<unknown> =
    type === 'bigint' ? int8() : type === 'json' || type === 'jsonb' ? asJson(type) : plain(type)
  return { ...(nullable ? optional(stored) : stored), column }
}

/** The columns of a model by its fields; `Own` has narrower types of some, such as those of JSON. */
export function columnsOf<M extends keyof Models, Own = unknown>(model: M) {
  const entries = Object.entries(columns[model]).map(([field, column]) => [field, typeOf(column)])
  return Object.fromEntries(entries) as {
    [K in keyof Fields<M>]: Column<K extends keyof Own ? Own[K] : Read<Fields<M>[K]>>
  }
}

type Described<M extends keyof Models> = (typeof columns)[M]

/** What a new row of a model has by its schema: the defaults, and null. */
export function initialOf<M extends keyof Models>(model: M) {
  const having = Object.entries(columns[model]).filter(([, column]) => 'initial' in column)
  return Object.fromEntries(having.map(([field, column]) => [field, column.initial])) as {
    [K in keyof Fields<M> as K extends keyof Described<M>
      ? Described<M>[K] extends { initial: unknown }
        ? K
        : never
      : never]: Fields<M>[K]
  }
}

export function pick<C extends object, K extends keyof C>(columns: C, ...fields: K[][]): Pick<C, K> {
  return Object.fromEntries(fields.flat().map((field) => [field, columns[field as K]])) as Pick<C, K>
}

export function omit<C extends object, K extends keyof C>(columns: C, fields: K[]): Omit<C, K> {
  return Object.fromEntries(Object.entries(columns).filter(([field]) => !fields.includes(field as K))) as Omit<C, K>
}

const namesOf = (columns: AnyColumns) => Object.values(columns).map(({ column }) => column)

/** The columns as they are, for `inserted` from the same table. */
export function selves<C extends AnyColumns>(columns: C): Places<C> {
  return Object.fromEntries(Object.entries(columns).map(([field, { column }]) => [field, column])) as Places<C>
}

/** For SELECT: `d.id, d.account_id AS "accountId"`. */
export function selected(columns: AnyColumns, table: string): string {
  const one = ([field, { column }]: [string, { column: string }]) =>
    `${table}.${column}${field === column ? '' : ` AS "${field}"`}`
  return Object.entries(columns).map(one).join(', ')
}

/** For INSERT INTO: the columns, and the parameters of the same names as a SELECT. */
export function inserted<C extends AnyColumns>(columns: C, p: Places<C>): string {
  const values = Object.keys(columns).map((field) => p[field])
  return `(${namesOf(columns).join(', ')}) SELECT ${values.join(', ')}`
}

/** For ON CONFLICT DO UPDATE SET: what was to be inserted. */
export function replaced(columns: AnyColumns): string {
  return namesOf(columns)
    .map((column) => `${column} = excluded.${column}`)
    .join(', ')
}

/**
 * For INSERT INTO: the columns, and a SELECT of them from a list in JSON, which is one parameter for any number of rows.
 * `same` has the columns that are the same in all rows, by their parameters.
 */
export function insertedFrom<C extends AnyColumns, K extends keyof C = never>(
  columns: C,
  list: string,
  same = {} as Record<K, string>,
): string {
  const fields = Object.keys(columns)
  const isSame = (field: string): field is K & string => field in same
  const rows = fields.filter((field) => !isSame(field)).map((field) => `"${field}" ${columns[field]!.name}`)
  const values = fields.map((field) => (isSame(field) ? same[field] : `r."${field}"`))
  return `(${namesOf(columns).join(', ')}) SELECT ${values.join(', ')} FROM ${list} AS r(${rows.join(', ')})`
}
