// Refused fields of a body: rules that a schema cannot state, collected so that a caller hears of all of them at once.
import { Fault, type FieldCode, type FieldError } from './errors.ts'

/** How many refused fields one answer names. */
export const maxFieldErrors = 100

/** A body without the fields whose form is wrong: what is left can still be checked for its meaning. */
export type Sound<T> = T extends readonly (infer Item)[]
  ? (Sound<Item> | undefined)[]
  : T extends object
    ? { [Key in keyof T]?: Sound<T[Key]> }
    : T

export function badField(pointer: string, code: FieldCode, detail: string): FieldError {
  return { in: 'body', pointer, code, detail }
}

const nameOf = ({ pointer }: FieldError) => (pointer === '#' ? 'body' : pointer.slice(2).replaceAll('/', '.'))

/** The refusal of these fields; a single one is explained at once. */
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

/** The fields that a check refuses; whatever else it throws is thrown. */
export async function refusedBy(check: () => unknown): Promise<FieldError[]> {
  try {
    await check()
    return []
  } catch (error) {
    if (error instanceof Fault && error.members.errors) return error.members.errors
    throw error
  }
}

/** The results of all checks, one after another; what several of them refuse is refused at once. */
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
