// Shows that work is linear by counting its steps. The count is the same on every machine, however busy it is.
import { expect } from 'vitest'
import { countBuiltins } from './builtins.ts'
import { counter } from './counter.ts'
import { CountingRegExp } from './regex.ts'

Object.assign(globalThis, {
  [Symbol.for('steps')]: Object.assign(counter, {
    RegExp: CountingRegExp,
    /** Counts the elements of a spread. */
    all<T extends { length?: number; size?: number } | null | undefined>(values: T): T {
      counter.own += values?.length ?? values?.size ?? 0
      return values
    },
  }),
})

/** Loads an instrumented copy of a module, given its path from the root of the repository. */
export const counted = <Module>(path: string): Promise<Module> => import(/* @vite-ignore */ `/${path}?steps`)

/** Counts calls, loop iterations and regular expression steps of `counted` modules, and what built-ins go through. */
export async function stepsOf(work: () => unknown, limit = Number.POSITIVE_INFINITY): Promise<number> {
  const restore = countBuiltins()
  Object.assign(counter, { isOn: true, own: 0, builtIn: 0, limit })
  try {
    const done = work()
    // Synchronous work isn't awaited, so nothing else runs and counts in between.
    if (done instanceof Promise) await done
  } finally {
    counter.isOn = false
    restore()
  }
  if (counter.own === 0) throw new Error('the work calls no instrumented module')
  return counter.own + counter.builtIn
}

/** Allows eight times the steps for eight times the size, plus half. Quadratic work takes 64 times as many. */
export async function takesLinearSteps(size: number, work: (size: number) => unknown): Promise<void> {
  const small = await stepsOf(() => work(size))
  const limit = small * 8 * 1.5
  expect(await stepsOf(() => work(size * 8), limit)).toBeLessThan(limit)
}
