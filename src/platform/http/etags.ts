// Strong ETags: how they are made, and whether a precondition names one.
import { hash } from 'node:crypto'

export const etagOfText = (text: string | Uint8Array) => `"${hash('sha1', text, 'base64url')}"`

export function etagOf(view: unknown): string {
  return etagOfText(JSON.stringify(view))
}

/** Of a resource that also changes by itself: behind the version that requests change comes one of all that is shown. */
export const etagOfLive = (version: unknown, view: unknown) =>
  `${etagOf(version).slice(0, -1)}+${etagOf(view).slice(1)}`

/** The ETag of the same resource as it is sent in an encoding (RFC 9110, 8.8.1). */
export const etagIn = (etag: string, encoding: string) => etag.replace(/"$/, `.${encoding}"`)

const inAnyEncoding = (etag: string) => etag.replace(/\.(br|gzip)"$/, '"')

/** Whether a list of ETags, as in If-Match, names this one; it is the same resource in whatever encoding it was sent. */
export function namesEtag(header: string, etag: string): boolean {
  const wanted = inAnyEncoding(etag)
  return header.split(',').some((item) => item.trim() === '*' || inAnyEncoding(item.trim()) === wanted)
}

/** Whether If-Match names the version, whatever changed by itself meanwhile. */
export const namesVersion = (header: string, etag: string) => namesEtag(header.replace(/\+[\w-]+/g, ''), etag)
