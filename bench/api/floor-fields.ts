// The fields of the floor's responses, derived from the API's schemas, so that new fields appear here too.
import type { TObject, TSchema } from '@sinclair/typebox'

export type Row = Record<string, unknown>

const isNullable = ({ type, anyOf }: TSchema) =>
  [type, ...(anyOf ?? []).map((schema: TSchema) => schema.type)].flat().includes('null')

/** The default of nullable and list fields. */
export function emptyOf({ properties, required = [] }: TObject): Row {
  const empty: Row = {}
  for (const name of required) {
    const schema = properties[name]!
    if (isNullable(schema)) empty[name] = null
    else if (schema.type === 'array') empty[name] = []
  }
  return empty
}

/** Fills in fields without a column or with NULL. */
export function completerOf(schema: TObject): (row: Row) => Row {
  const fields = Object.entries(emptyOf(schema))
  return (row) => {
    for (const [name, value] of fields) row[name] ??= value
    return row
  }
}

/** The SELECT list: every field with a column. */
export function columnsOf({ required = [] }: TObject, table: string, columns: Set<string>): string {
  return required
    .map((name) => ({ name, column: name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`) }))
    .filter(({ column }) => columns.has(column))
    .map(({ name, column }) => `${table}.${column} AS "${name}"`)
    .join(', ')
}
