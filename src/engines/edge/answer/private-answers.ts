// Headers of answers that are not for everybody: no shared cache may keep them.
import type { Adjust } from './responses.ts'

// What tells the caches of others more than Cache-Control does.
const forCaches = /^(?:surrogate-control|(?:[a-z0-9-]+-)?cdn-cache-control|expires)$/i

/** Whatever a site or a server says about caching, only the visitor's own browser may keep it. */
export const privately: Adjust = (headers) => {
  const kept: string[] = []
  const caching = ['private']
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i]!
    if (name.toLowerCase() === 'cache-control') {
      const directives = headers[i + 1]!.split(',').map((text) => text.trim())
      caching.push(...directives.filter((text) => text !== '' && !/^(?:public|private|s-maxage)\b/i.test(text)))
    } else if (!forCaches.test(name)) kept.push(name, headers[i + 1]!)
  }
  return [...kept, 'cache-control', caching.join(', ')]
}

/** Adds a name to Vary. */
export const varying =
  (on: string): Adjust =>
  (headers) => {
    const at = headers.findIndex((name, i) => i % 2 === 0 && name.toLowerCase() === 'vary')
    if (at < 0) return [...headers, 'vary', on]
    return headers.with(at + 1, `${headers[at + 1]}, ${on}`)
  }

export const both =
  (first: Adjust | null, second: Adjust): Adjust =>
  (headers) =>
    second(first ? first(headers) : headers)
