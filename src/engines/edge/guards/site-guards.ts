// What a site asks of its visitors by its own rules: a name and a password (Basic-Auth in _headers).
import type { IncomingMessage } from 'node:http'
import { addressesOf, credentialsIn, credentialsOf, isAnyOf } from '../../../platform/site-rules/credentials.ts'
import { both, privately, varying } from '../answer/private-answers.ts'
import type { EdgeResponse } from '../answer/responses.ts'
import type { Resolution } from '../hosts/resolve.ts'
import type { Site } from '../hosts/sites.ts'
import { createCredentialTries } from './tries.ts'

export const asksForPassword = ['www-authenticate', 'Basic realm="Protected", charset="UTF-8"']

/** What a request found at a path of a site of this project. */
export type Found = { projectId: string; site: Site; path: string; found: Resolution }

/** Whether the visitor may see what was found, or in how many seconds to ask again; marks the answer as not for everybody. */
export type Guards = (request: IncomingMessage, response: EdgeResponse, found: Found) => boolean | number

export function createGuards(): Guards {
  const judge = createCredentialTries()
  return (request, response, { projectId, ...found }) => {
    const credentials = neededFor(response, found)
    if (!credentials) return true
    const given = credentialsIn(request.headers.authorization)
    // A browser that was not asked yet has guessed nothing.
    if (given === null) return false
    const address = request.socket.remoteAddress ?? ''
    return judge({ projectId, address, credentials: given, isRight: isAnyOf(credentials, given) })
  }
}

function neededFor(response: EdgeResponse, { site, path, found }: Omit<Found, 'projectId'>): Buffer[] | null {
  if (site.byLanguage) response.adjust = both(response.adjust, varying('Accept-Language'))
  if (site.guards.length === 0) return null
  // By the address that was asked for, and by the file's own: a rewrite must not open it.
  const credentials = credentialsOf(site.guards, [path, ...(found?.kind === 'file' ? addressesOf(found.path) : [])])
  if (credentials) response.adjust = both(response.adjust, privately)
  return credentials
}
