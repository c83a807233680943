// Acting on the end of a signal.

/** Acts when the signal is aborted, also if it already is, which fires no event. Returns how to stop listening. */
export function onAbort(signal: AbortSignal, act: () => void): () => void {
  signal.addEventListener('abort', act, { once: true })
  if (signal.aborted) act()
  return () => signal.removeEventListener('abort', act)
}
