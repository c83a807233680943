// Counts how many characters, items or bytes the built-in functions go through.
import { counter } from './counter.ts'

type Method = (this: { length: number }, ...given: unknown[]) => unknown
type Cost = (it: { length: number }, given: unknown[], result: unknown) => number

const lengthOf = (it: unknown): number => {
  const { length, size } = (it ?? {}) as { length?: number; size?: number }
  return length ?? size ?? 0
}
const whole: Cost = (it) => it.length
const ofResult: Cost = (_, __, result) => lengthOf(result)
const ofGiven: Cost = (_, [first]) => lengthOf(first)
/** The distance a search covers. */
const forwards: Cost = (it, [, from], result) =>
  (typeof result === 'number' && result >= 0 ? result + 1 : it.length) - Math.min(Number(from ?? 0), it.length)
const backwards: Cost = (it, [, from], result) =>
  Math.min(Number(from ?? it.length), it.length) - (typeof result === 'number' ? result : 0)
const removed: Cost = (it, _, result) => it.length - lengthOf(result)

const costs: [holder: object, Record<string, Cost>][] = [
  [
    String.prototype,
    {
      ...{ indexOf: forwards, includes: forwards, lastIndexOf: backwards, startsWith: ofGiven, endsWith: ofGiven },
      ...{ toLowerCase: whole, toUpperCase: whole, toWellFormed: whole, isWellFormed: whole, normalize: whole },
      ...{
        trim: removed,
        trimStart: removed,
        trimEnd: removed,
        padStart: ofResult,
        padEnd: ofResult,
        repeat: ofResult,
      },
      ...{ localeCompare: whole, replaceAll: whole },
      split: (it, [separator]) => (typeof separator === 'string' ? it.length : 0),
    },
  ],
  [
    Array.prototype,
    {
      ...{
        indexOf: forwards,
        includes: whole,
        lastIndexOf: backwards,
        slice: ofResult,
        concat: ofResult,
        flat: ofResult,
      },
      ...{ shift: whole, unshift: whole, splice: whole, reverse: whole, toReversed: whole, fill: whole, join: whole },
    },
  ],
  [
    Buffer.prototype,
    {
      indexOf: forwards,
      includes: whole,
      toString: ofResult,
      equals: whole,
      fill: whole,
      copy: (_, __, result) => Number(result),
    },
  ],
  [Buffer, { concat: ofResult, from: ofResult, alloc: ofResult, byteLength: ofGiven }],
  [globalThis, { encodeURIComponent: ofGiven, decodeURIComponent: ofGiven, encodeURI: ofGiven, decodeURI: ofGiven }],
  [JSON, { parse: ofGiven, stringify: ofResult }],
]

/** Patches the built-ins; the returned function restores them. */
export function countBuiltins(): () => void {
  const undo: (() => void)[] = []
  for (const [holder, methods] of costs) {
    for (const [name, costOf] of Object.entries(methods)) {
      const descriptor = Object.getOwnPropertyDescriptor(holder, name)
      if (!descriptor) continue
      const method = descriptor.value as Method
      const counting: Method = function (...given) {
        const result = method.apply(this, given)
        counter.builtIn += 1 + costOf(this, given, result)
        return result
      }
      Object.defineProperty(holder, name, { ...descriptor, value: counting })
      undo.push(() => Object.defineProperty(holder, name, descriptor))
    }
  }
  const { URLSearchParams } = globalThis
  globalThis.URLSearchParams = class extends URLSearchParams {
    constructor(init?: ConstructorParameters<typeof URLSearchParams>[0]) {
      super(init)
      counter.builtIn += lengthOf(init)
    }
  }
  undo.push(() => {
    globalThis.URLSearchParams = URLSearchParams
  })
  return () => {
    for (const one of undo) one()
  }
}
