// Skew protection: everything a page loads comes from the page's own deployment, even if production has moved on.
import type { IncomingMessage } from 'node:http'
import { isNamedByContent } from '../answer/caching.ts'
import { inOrder, makePrivate } from '../answer/header-changes.ts'
import type { EdgeResponse, HeaderChange } from '../answer/responses.ts'
import { isEncrypted } from '../hosts/host-header.ts'
import type { Snapshot } from '../hosts/snapshot.ts'
import type { Host, Target } from '../hosts/targets.ts'
import { cookiesOf } from './cookies.ts'

const cookieName = '__dpl'
const visitSeconds = 24 * 60 * 60

type Asked = { url: string; found: Host; current: Target }

type Remembered = { url: string; target: Target; current: Target }

/** Immutable files are the same for everybody; all other responses depend on the visitor. */
const keepImmutable: HeaderChange = (headers) => {
  const at = headers.findIndex((name, i) => i % 2 === 0 && name.toLowerCase() === 'cache-control')
  return at >= 0 && headers[at + 1]!.includes('immutable') ? headers : makePrivate(headers)
}

/** The deployment that serves the request: the requested one if the host may show it, else the current one. */
export function deploymentOf(request: IncomingMessage, { url, found, current }: Asked, snapshot: Snapshot): Target {
  const pinned = (id: string | undefined) => (id === undefined ? null : snapshot.pinned(found, id))
  const asked = pinned(/[?&]dpl=(dpl_[0-9a-z]{1,40})(?:&|$)/.exec(url)?.[1])
  if (asked) return asked
  return (isNavigation(request) ? null : pinned(cookiesOf(request, cookieName)[0])) ?? current
}

/** Sets the visitor's cookie for a page, and keeps responses that depend on it out of shared caches. */
export function remember(request: IncomingMessage, response: EdgeResponse, { url, target, current }: Remembered): void {
  const { deploymentId } = target
  // A site may call files immutable whose names contain no hash. Shared caches must not serve an old one to others.
  const isShared = deploymentId === current.deploymentId || isNamedByContent(url.split('?', 1)[0]!.slice(1))
  response.changeHeaders = inOrder(response.changeHeaders, isShared ? keepImmutable : makePrivate)
  if (!isNavigation(request)) return
  const secure = isEncrypted(request) ? '; Secure' : ''
  const cookie = `${cookieName}=${deploymentId}; Path=/; Max-Age=${visitSeconds}; HttpOnly; SameSite=Lax${secure}`
  response.changeHeaders = inOrder(response.changeHeaders, (headers) => [...makePrivate(headers), 'set-cookie', cookie])
}

/** Browsers send Sec-Fetch-Mode; other clients show it by accepting HTML. */
function isNavigation({ method, headers }: IncomingMessage): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false
  const mode = headers['sec-fetch-mode']
  if (mode !== undefined) return mode === 'navigate'
  return headers.accept?.includes('text/html') === true
}
