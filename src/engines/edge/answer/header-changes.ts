// Changes to response headers: responses that depend on the visitor must not end up in shared caches.
import type { HeaderChange } from './responses.ts'

// Headers that override Cache-Control in shared caches.
const sharedCacheHeaders = /^(?:surrogate-control|(?:[a-z0-9-]+-)?cdn-cache-control|expires)$/i

/** Lets only the visitor's own browser cache the response, whatever the site or its server says. */
export const makePrivate: HeaderChange = (headers) => {
  const others: string[] = []
  const caching = ['private']
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i]!
    if (name.toLowerCase() === 'cache-control') {
      const directives = headers[i + 1]!.split(',').map((text) => text.trim())
      caching.push(...directives.filter((text) => text !== '' && !/^(?:public|private|s-maxage)\b/i.test(text)))
    } else if (!sharedCacheHeaders.test(name)) others.push(name, headers[i + 1]!)
  }
  return [...others, 'cache-control', caching.join(', ')]
}

export const addVary =
  (on: string): HeaderChange =>
  (headers) => {
    const at = headers.findIndex((name, i) => i % 2 === 0 && name.toLowerCase() === 'vary')
    if (at < 0) return [...headers, 'vary', on]
    return headers.with(at + 1, `${headers[at + 1]}, ${on}`)
  }

export const inOrder =
  (first: HeaderChange | null, second: HeaderChange): HeaderChange =>
  (headers) =>
    second(first ? first(headers) : headers)
