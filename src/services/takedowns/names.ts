// Which names a takedown covers. It is by name alone, whoever the name leads to: claiming it again is no way out.

/** The names whose takedown covers the host: its own, the wildcard that stands for it, and for a `www` the name below. */
export function namesCovering(host: string): string[] {
  const names = [host, `*${host.slice(host.indexOf('.'))}`]
  return host.startsWith('www.') ? [...names, host.slice(4)] : names
}

/** The same question of a set, on the path of every request: nothing is made where nothing is taken down. */
export function isTakenDown(takenDown: ReadonlySet<string>, host: string): boolean {
  if (takenDown.size === 0) return false
  if (takenDown.has(host) || takenDown.has(`*${host.slice(host.indexOf('.'))}`)) return true
  return host.startsWith('www.') && takenDown.has(host.slice(4))
}
