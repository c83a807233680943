// The type of a command's action.
import type { Context } from './context.ts'

/** Resolves to an exit code, or to nothing for 0. */
export type Action<O = Record<string, never>> = (
  context: Context,
  args: string[],
  options: O,
) => Promise<number | undefined>
