// The names that a takedown covers. It goes by name only, so claiming the name again does not evade it.

/** The names whose takedown covers the host: its own, its wildcard, and for a `www` the name after it. */
export function namesCovering(host: string): string[] {
  const names = [host, `*${host.slice(host.indexOf('.'))}`]
  return host.startsWith('www.') ? [...names, host.slice(4)] : names
}

/** Like `namesCovering`, but without allocations, because every request calls it. */
export function isTakenDown(takenDown: ReadonlySet<string>, host: string): boolean {
  if (takenDown.size === 0) return false
  if (takenDown.has(host) || takenDown.has(`*${host.slice(host.indexOf('.'))}`)) return true
  return host.startsWith('www.') && takenDown.has(host.slice(4))
}
