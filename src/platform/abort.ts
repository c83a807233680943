// Calls a function when an AbortSignal is aborted.

/** Also calls `act` if the signal is already aborted, which fires no event. Returns a function that stops listening. */
export function onAbort(signal: AbortSignal, act: () => void): () => void {
  signal.addEventListener('abort', act, { once: true })
  if (signal.aborted) act()
  return () => signal.removeEventListener('abort', act)
}
