// Basic authentication that a site requires by its own rules (Basic-Auth in _headers).
import type { IncomingMessage } from 'node:http'
import { addressesOf, credentialsIn, credentialsOf, isAnyOf } from '../../../platform/site-rules/credentials.ts'
import { addVary, inOrder, makePrivate } from '../answer/header-changes.ts'
import type { EdgeResponse } from '../answer/responses.ts'
import type { Resolution } from '../hosts/resolve.ts'
import type { Site } from '../hosts/sites.ts'
import { createCredentialLimits } from './attempt-limits.ts'

export const basicChallenge = ['www-authenticate', 'Basic realm="Protected", charset="UTF-8"']

/** A requested path and what the site has there. */
export type GuardedPath = { projectId: string; site: Site; path: string; found: Resolution }

/** Whether the visitor may see the path, or how many seconds to wait. Makes the response private if it is guarded. */
export type Guards = (request: IncomingMessage, response: EdgeResponse, found: GuardedPath) => boolean | number

export function createGuards(): Guards {
  const checkAttempt = createCredentialLimits()
  return (request, response, { projectId, ...found }) => {
    const credentials = requiredCredentials(response, found)
    if (!credentials) return true
    const presented = credentialsIn(request.headers.authorization)
    // A browser sends no credentials before the first 401, which is not a guess.
    if (presented === null) return false
    const address = request.socket.remoteAddress ?? ''
    return checkAttempt({ projectId, address, credentials: presented, isRight: isAnyOf(credentials, presented) })
  }
}

function requiredCredentials(
  response: EdgeResponse,
  { site, path, found }: Omit<GuardedPath, 'projectId'>,
): Buffer[] | null {
  if (site.byLanguage) response.changeHeaders = inOrder(response.changeHeaders, addVary('Accept-Language'))
  if (site.guards.length === 0) return null
  // The file's own paths count too, so that a rewrite can't bypass its guard.
  const credentials = credentialsOf(site.guards, [path, ...(found?.kind === 'file' ? addressesOf(found.path) : [])])
  if (credentials) response.changeHeaders = inOrder(response.changeHeaders, makePrivate)
  return credentials
}
