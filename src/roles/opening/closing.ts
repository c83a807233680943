// Closes what was opened, in reverse. Every closer runs, even if another one fails.
export type Close = () => unknown

export type Closing = {
  /** Registers the closer of what was just opened. */
  add(close: Close): void
  /** Throws the first error after all closers have run. May be called again: each closer runs once. */
  closeAll(): Promise<void>
}

export function createClosing(): Closing {
  const closers: Close[] = []
  return {
    add: (close) => void closers.push(close),
    async closeAll() {
      const errors: unknown[] = []
      for (const close of closers.splice(0).reverse()) {
        try {
          await close()
        } catch (error) {
          errors.push(error)
        }
      }
      if (errors.length > 0) throw errors[0]
    },
  }
}
