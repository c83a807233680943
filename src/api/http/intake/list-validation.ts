// Validation of a body that has one long list: some items at a time, and other requests are answered in between.
import type { FieldError } from '../../../platform/errors.ts'
import { maxFieldErrors } from '../../../platform/fields.ts'
import { createPauses } from '../../../platform/pauses.ts'
import { unstorableIn } from './json-bodies.ts'
import { bodyFaults, ShapeFault } from './validation.ts'

const itemsAtOnce = 250

/** `holder` finds the object that has the list, in a body of any form; `pointer` is that of the list. */
export type LongList = {
  name: string
  pointer: string
  maxItems: number
  holder(body: unknown): unknown
}

/** Whether the list is long; others are validated at once. */
export function longListIn(body: unknown, { name, holder }: LongList): unknown[] | null {
  const list = (holder(body) as Record<string, unknown> | undefined)?.[name]
  return Array.isArray(list) && list.length > itemsAtOnce ? list : null
}

/** Throws the same refusal as a validator returns for the whole body. */
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
        // What is wrong with the rest of the body was found with the first items.
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
