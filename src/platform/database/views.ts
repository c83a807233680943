// Views: what the API shows of a row, by the schema of the response.
import type { Static, TObject } from '@sinclair/typebox'

type Shown<T> = T extends Date ? string : T

/** Whether a field can be shown as it is. A narrower type of the schema is the business of whoever writes the column. */
type Fits<R, V> = null extends R ? (null extends V ? Comparable<R, V> : false) : Comparable<R, V>
type Comparable<R, V> = [NonNullable<V>] extends [Shown<NonNullable<R>>]
  ? true
  : [Shown<NonNullable<R>>] extends [NonNullable<V>]
    ? true
    : false

type Required<V> = { [K in keyof V]-?: undefined extends V[K] ? never : K }[keyof V]
/** The fields of a view that its row doesn't have, or not in this form. */
type Missing<R, V> = {
  [K in Required<V>]: K extends keyof R ? (Fits<R[K], V[K]> extends true ? never : K) : K
}[Required<V>]

type Own<R, V> = [Missing<R, V>] extends [never] ? [own?: Partial<V>] : [own: Pick<V, Missing<R, V>> & Partial<V>]

/**
 * Shows a row by a schema: fields of the same name as they are, times as text, and the fields of `own` in their place. The
 * compiler asks for those that the row doesn't have.
 */
export function viewOf<S extends TObject>({ properties }: S) {
  const fields = Object.keys(properties)
  return <R extends object>(row: R, ...[own = {}]: Own<R, Static<S>>): Static<S> => {
    const view: Record<string, unknown> = {}
    for (const field of fields) {
      const value = field in own ? own[field as never] : row[field as keyof R]
      if (value !== undefined) view[field] = value instanceof Date ? value.toISOString() : value
    }
    return view as Static<S>
  }
}
