// Validates a body with one long list in batches, and lets other requests run in between.
import type { FieldError } from '../../../platform/errors.ts'
import { maxFieldErrors } from '../../../platform/fields.ts'
import { createPauses } from '../../../platform/pauses.ts'
import { unstorableIn } from './json-bodies.ts'
import { bodyFaults, ShapeFault } from './validation.ts'

const itemsAtOnce = 250

/** `holder` returns the object with the list, whatever the body looks like; `pointer` points to the list. */
export type LongList = {
  name: string
  pointer: string
  maxItems: number
  holder(body: unknown): unknown
}

/** The list if it is long; short ones are validated at once. */
export function longListIn(body: unknown, { name, holder }: LongList): unknown[] | null {
  const list = (holder(body) as Record<string, unknown> | undefined)?.[name]
  return Array.isArray(list) && list.length > itemsAtOnce ? list : null
}

/** Throws the same errors as a validator of the whole body. */
export function listValidator(schema: object, list: LongList): (body: unknown, items: unknown[]) => Promise<void> {
  let faultsOf: ReturnType<typeof bodyFaults> | null = null

  return async (body, items) => {
    faultsOf ??= bodyFaults(schema)
    const pauses = createPauses()
    const holder = list.holder(body) as Record<string, unknown>
    const errors: FieldError[] = [...unstorableIn(body)]
    const { length } = items
    if (length > list.maxItems) {
      const detail = `has ${length} items; the limit is ${list.maxItems}`
      errors.push({ in: 'body', pointer: list.pointer, code: 'too_long', detail })
      items.length = itemsAtOnce
    }
    try {
      for (let at = 0; at < items.length && errors.length < maxFieldErrors; at += itemsAtOnce) {
        const pause = pauses()
        if (pause) await pause
        holder[list.name] = items.slice(at, at + itemsAtOnce)
        // Errors in the rest of the body were found with the first batch.
        const isNew = ({ pointer }: FieldError) => at === 0 || pointer.startsWith(`${list.pointer}/`)
        errors.push(
          ...faultsOf(body)
            .filter(isNew)
            .map((error) => moved(error, list.pointer, at)),
        )
      }
    } finally {
      holder[list.name] = items
    }
    if (errors.length > 0) throw new ShapeFault(errors)
  }
}

function moved(error: FieldError, list: string, by: number): FieldError {
  if (by === 0 || !error.pointer.startsWith(`${list}/`)) return error
  const [index, ...rest] = error.pointer.slice(list.length + 1).split('/')
  return { ...error, pointer: [list, String(Number(index) + by), ...rest].join('/') }
}
