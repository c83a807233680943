// Parses Range headers with a single range, as players and download managers send.

export type Range = { start: number; end: number }

/** Null: there is no range to honor, so the whole file is sent. */
export function rangeOf(header: string | undefined, size: number): Range | 'unsatisfiable' | null {
  if (header === undefined) return null
  // For several ranges we send the whole file. RFC 9110 allows that, and no client needs multipart.
  const [, first = '', last = ''] = /^bytes=[ \t]*(\d{0,15})-(\d{0,15})[ \t]*$/i.exec(header) ?? []
  if (first === '' && last === '') return null
  if (first === '') {
    const length = Math.min(Number(last), size)
    return length === 0 ? 'unsatisfiable' : { start: size - length, end: size - 1 }
  }
  const start = Number(first)
  if (last !== '' && Number(last) < start) return null
  if (start >= size) return 'unsatisfiable'
  return { start, end: last === '' ? size - 1 : Math.min(Number(last), size - 1) }
}

/** Compares weakly, as If-None-Match requires: proxies that compress make our tags weak. */
export function matchesTag(header: string, tag: string): boolean {
  if (header === tag) return true
  if (header.trim() === '*') return true
  return header.split(',').some((item) => item.trim().replace(/^W\//, '') === tag)
}
