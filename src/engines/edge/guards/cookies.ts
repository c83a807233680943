// Cookies of visitors, read by name.
import type { IncomingMessage } from 'node:http'

/** All values of the name, in order: a page of another host may have set one of the same name. */
export function cookiesOf({ headers }: IncomingMessage, name: string): string[] {
  const found: string[] = []
  for (const part of (headers.cookie ?? '').split(';')) {
    const at = part.indexOf('=')
    if (at > 0 && part.slice(0, at).trim() === name) found.push(part.slice(at + 1).trim())
  }
  return found
}
