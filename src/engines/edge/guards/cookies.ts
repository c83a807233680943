// Reads visitors' cookies.
import type { IncomingMessage } from 'node:http'

/** All values in order, since a page of another host may have set a cookie of the same name. */
export function cookiesOf({ headers }: IncomingMessage, name: string): string[] {
  const values: string[] = []
  for (const part of (headers.cookie ?? '').split(';')) {
    const at = part.indexOf('=')
    if (at > 0 && part.slice(0, at).trim() === name) values.push(part.slice(at + 1).trim())
  }
  return values
}
