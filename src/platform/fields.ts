// Invalid fields of a body: collects all errors of rules that a schema can't express, so that one response names them all.
import { Fault, type FieldCode, type FieldError } from './errors.ts'

/** The maximum number of invalid fields that a response names. */
export const maxFieldErrors = 100

/** A body without its malformed fields: the rest can still be validated. */
export type Sound<T> = T extends readonly (infer Item)[]
  ? (Sound<Item> | undefined)[]
  : T extends object
    ? { [Key in keyof T]?: Sound<T[Key]> }
    : T

export function badField(pointer: string, code: FieldCode, detail: string): FieldError {
  return { in: 'body', pointer, code, detail }
}

const nameOf = ({ pointer }: FieldError) => (pointer === '#' ? 'body' : pointer.slice(2).replaceAll('/', '.'))

/** The error for these fields. If there is only one, `detail` explains it. */
export function invalidFields(errors: readonly FieldError[]): Fault {
  const named = errors.slice(0, maxFieldErrors)
  const more = errors.length > named.length ? ` and ${errors.length - named.length} more` : ''
  const [only] = errors
  const explained = only?.pointer === '#' ? only.detail : `${only && nameOf(only)}: ${only?.detail}`
  const detail = errors.length === 1 ? explained : `Invalid: ${named.map(nameOf).join(', ')}${more}.`
  return new Fault('validation_failed', detail, { errors: [...errors] })
}

/** Throws if there are any. */
export function refuseFields(errors: readonly FieldError[]): void {
  if (errors.length > 0) throw invalidFields(errors)
}

/** The field errors that a check throws. Other errors are rethrown. */
export async function refusedBy(check: () => unknown): Promise<FieldError[]> {
  try {
    await check()
    return []
  } catch (error) {
    if (error instanceof Fault && error.members.errors) return error.members.errors
    throw error
  }
}

/** Runs all checks in order and returns their results. Throws the field errors of all checks at once. */
export async function together<T extends readonly unknown[]>(
  ...checks: { [Index in keyof T]: () => T[Index] | Promise<T[Index]> }
): Promise<T> {
  const results: unknown[] = []
  const errors: FieldError[] = []
  for (const check of checks) {
    errors.push(
      ...(await refusedBy(async () => {
        results.push(await check())
      })),
    )
  }
  refuseFields(errors)
  return results as unknown as T
}
