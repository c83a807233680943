// What a site asks of its visitors by its own rules: a name and a password (Basic-Auth in _headers).
import type { IncomingMessage } from 'node:http'
import { addressesOf, credentialsOf, holdsOne } from '../../platform/site-rules/credentials.ts'
import { both, privately, varying } from './private-answers.ts'
import type { Resolution } from './resolve.ts'
import type { EdgeResponse } from './responses.ts'
import type { Site } from './sites.ts'

export const asksForPassword = ['www-authenticate', 'Basic realm="Protected", charset="UTF-8"']

/** What a request found at a path of a site. */
export type Found = { site: Site; path: string; found: Resolution }

/** Whether the visitor may see what was found; marks the answer as one that is not for everybody. */
export function admits(request: IncomingMessage, response: EdgeResponse, { site, path, found }: Found): boolean {
  if (site.byLanguage) response.adjust = both(response.adjust, varying('Accept-Language'))
  if (site.guards.length === 0) return true
  // By the address that was asked for, and by the file's own: a rewrite must not open it.
  const credentials = credentialsOf(site.guards, [path, ...(found?.kind === 'file' ? addressesOf(found.path) : [])])
  if (!credentials) return true
  response.adjust = both(response.adjust, privately)
  return holdsOne(credentials, request.headers.authorization)
}
