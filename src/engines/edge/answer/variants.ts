// The responses for a file, one per encoding, with headers built once as the array that Node expects.
import type { StoredFile } from '../../../platform/artifacts/artifacts.ts'
import type { ExtraHeaders } from '../../../platform/site-rules/header-rules.ts'
import { cachingOf } from './caching.ts'
import { contentTypeOf } from './content-types.ts'
import type { AnyEncoding, Preference } from './encodings.ts'

export type Variant = {
  hash: string
  encoding: AnyEncoding
  /** Key in the cache of bodies: equal for equal bytes, at any path and in any site. */
  key: string
  size: number
  etag: string
  /** Alternating names and values for the whole file; Content-Length comes last. */
  headers: string[]
  /** How many elements of `headers` also go into a response without a body. */
  bareLength: number
}

/** The variants of a file at one path. They are created on demand, since most clients want the same one. */
export type Variants = {
  readonly path: string
  readonly file: StoredFile
  readonly status: 200 | 404
  readonly extra: ExtraHeaders
  br: Variant | null
  gzip: Variant | null
  identity: Variant | null
}

export function createVariants(path: string, file: StoredFile, status: 200 | 404, extra: ExtraHeaders): Variants {
  return { path, file, status, extra, br: null, gzip: null, identity: null }
}

/** The headers of a 304. */
export const bareHeaders = ({ headers, bareLength }: Variant) => headers.slice(0, bareLength)

/** The headers of a partial response, without Content-Length and Content-Range. */
export const partialHeaders = ({ headers }: Variant) => headers.slice(0, -2)

export function choose(variants: Variants, preference: Preference): Variant {
  for (const encoding of preference) {
    if (encoding === 'identity') break
    if (variants.file[encoding] !== undefined) return variantOf(variants, encoding)
    if (variants.file.br === undefined && variants.file.gzip === undefined) break
  }
  return variantOf(variants, 'identity')
}

export function variantOf(variants: Variants, encoding: AnyEncoding): Variant {
  variants[encoding] ??= build(variants, encoding)
  return variants[encoding]
}

function build({ path, file, status, extra }: Variants, encoding: AnyEncoding): Variant {
  const isCompressed = file.br !== undefined || file.gzip !== undefined
  const size = encoding === 'identity' ? file.size : file[encoding]!
  // Different bytes need different strong tags, so that clients don't combine ranges of two encodings.
  const tag = file.hash.slice(0, 32)
  const etag = encoding === 'identity' ? `"${tag}"` : `"${tag}-${encoding}"`
  const named = new Map([['cache-control', cachingOf(path)]])
  if (isCompressed) named.set('vary', 'Accept-Encoding')
  for (const [name, value] of extra) named.set(name, name === 'vary' && isCompressed ? addAcceptEncoding(value) : value)
  const type = named.get('content-type') ?? contentTypeOf(path)
  named.delete('content-type')
  if (status === 200) named.set('etag', etag)
  const headers = [...named].flat()
  const bareLength = headers.length
  headers.push('content-type', type)
  if (encoding !== 'identity') headers.push('content-encoding', encoding)
  else if (status === 200) headers.push('accept-ranges', 'bytes')
  headers.push('content-length', String(size))
  const key = encoding === 'identity' ? file.hash : `${file.hash}.${encoding}`
  return { hash: file.hash, encoding, key, size, etag, headers, bareLength }
}

function addAcceptEncoding(vary: string): string {
  return /(^|,)\s*(accept-encoding|\*)\s*(,|$)/i.test(vary) ? vary : `Accept-Encoding, ${vary}`
}
