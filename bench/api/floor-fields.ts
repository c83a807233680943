// Fields of the floor's responses, taken from the API's own schemas: a field that the API gains appears here too.
import type { TObject, TSchema } from '@sinclair/typebox'

export type Row = Record<string, unknown>

const isNullable = ({ type, anyOf }: TSchema) =>
  [type, ...(anyOf ?? []).map((schema: TSchema) => schema.type)].flat().includes('null')

/** The fields that may be null or an empty list, as such. */
export function emptyOf({ properties, required = [] }: TObject): Row {
  const empty: Row = {}
  for (const name of required) {
    const schema = properties[name]!
    if (isNullable(schema)) empty[name] = null
    else if (schema.type === 'array') empty[name] = []
  }
  return empty
}

/** Fills in what no column has, or holds NULL for. */
export function completerOf(schema: TObject): (row: Row) => Row {
  const fields = Object.entries(emptyOf(schema))
  return (row) => {
    for (const [name, value] of fields) row[name] ??= value
    return row
  }
}

/** A list for SELECT: every field that the table has a column for. */
export function columnsOf({ required = [] }: TObject, table: string, columns: Set<string>): string {
  return required
    .map((name) => ({ name, column: name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`) }))
    .filter(({ column }) => columns.has(column))
    .map(({ name, column }) => `${table}.${column} AS "${name}"`)
    .join(', ')
}
