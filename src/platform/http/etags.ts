// Strong ETags, and whether a precondition names one.
import { hash } from 'node:crypto'

export const etagOfText = (text: string | Uint8Array) => `"${hash('sha1', text, 'base64url')}"`

export function etagOf(view: unknown): string {
  return etagOfText(JSON.stringify(view))
}

/** For a resource that also changes without requests: the ETag of the version, followed by that of the whole view. */
export const etagOfLive = (version: unknown, view: unknown) =>
  `${etagOf(version).slice(0, -1)}+${etagOf(view).slice(1)}`

/** The ETag of the resource in a content encoding (RFC 9110, 8.8.1). */
export const etagIn = (etag: string, encoding: string) => etag.replace(/"$/, `.${encoding}"`)

const inAnyEncoding = (etag: string) => etag.replace(/\.(br|gzip)"$/, '"')

/** Whether a list of ETags, as in If-Match, contains this one in any content encoding. */
export function namesEtag(header: string, etag: string): boolean {
  const wanted = inAnyEncoding(etag)
  return header.split(',').some((item) => item.trim() === '*' || inAnyEncoding(item.trim()) === wanted)
}

/** Whether If-Match names the version, ignoring changes that no request made. */
export const namesVersion = (header: string, etag: string) => namesEtag(header.replace(/\+[\w-]+/g, ''), etag)
