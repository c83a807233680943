// Path patterns of _redirects and _headers: `:name` matches one segment, a final `*` matches the rest.

type Segment = { literal: string } | { name: string }

export type Pattern = { segments: Segment[]; splat: boolean }

export type Captures = Record<string, string>

/** Ignores a trailing slash, like Netlify: `/old` and `/old/` are the same address. */
function segmentsOf(path: string): string[] {
  const end = path.length > 1 && path.endsWith('/') ? path.length - 1 : path.length
  return end <= 1 ? [] : path.slice(1, end).split('/')
}

/** Null if the text isn't a pattern. Wildcards are whole segments, so that matching is always linear. */
export function parsePattern(text: string): Pattern | null {
  if (!text.startsWith('/') || text.startsWith('//')) return null
  const parts = segmentsOf(text)
  const splat = parts.at(-1) === '*'
  if (splat) parts.pop()
  const segments: Segment[] = []
  for (const part of parts) {
    if (part.includes('*')) return null
    if (part.startsWith(':')) {
      if (!/^:[A-Za-z]\w*$/.test(part)) return null
      segments.push({ name: part.slice(1) })
      continue
    }
    try {
      segments.push({ literal: decodeURIComponent(part) })
    } catch {
      return null
    }
  }
  return { segments, splat }
}

/** Splits a path once, to match it against many patterns. */
export function splitPath(path: string): string[] {
  return segmentsOf(path)
}

/** Whether a path matches. Doesn't extract captures, which takes longer. */
export function matchesPattern({ segments, splat }: Pattern, parts: readonly string[]): boolean {
  if (splat ? parts.length < segments.length : parts.length !== segments.length) return false
  for (let i = 0; i < segments.length; i++) {
    const segment = segments[i]!
    if ('literal' in segment ? segment.literal !== parts[i] : parts[i] === '') return false
  }
  return true
}

/** The captures of a path that matches. */
export function capturesOf({ segments, splat }: Pattern, parts: readonly string[]): Captures {
  const captures: Captures = {}
  for (let i = 0; i < segments.length; i++) {
    const segment = segments[i]!
    if ('name' in segment) captures[segment.name] = parts[i]!
  }
  if (splat) captures.splat = parts.slice(segments.length).join('/')
  return captures
}

/** Encodes a path for a Location header. */
export function encodePath(path: string): string {
  return encodeURI(path.toWellFormed()).replace(/[?#]/g, encodeURIComponent)
}
