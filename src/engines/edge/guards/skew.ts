// Skew protection: what a page loads comes from the deployment of the page, also when production has moved on.
import type { IncomingMessage } from 'node:http'
import { isNamedByContent } from '../answer/caching.ts'
import { both, privately } from '../answer/private-answers.ts'
import type { Adjust, EdgeResponse } from '../answer/responses.ts'
import { isEncrypted } from '../hosts/host-header.ts'
import type { Snapshot } from '../hosts/snapshot.ts'
import type { Host, Target } from '../hosts/targets.ts'
import { cookiesOf } from './cookies.ts'

const cookieName = '__dpl'
const visitSeconds = 24 * 60 * 60

type Asked = { url: string; found: Host; current: Target }

type Remembered = { url: string; target: Target; current: Target }

/** Files whose name has a hash in it are the same for everybody; all else depends on the visitor. */
const dependent: Adjust = (headers) => {
  const at = headers.findIndex((name, i) => i % 2 === 0 && name.toLowerCase() === 'cache-control')
  return at >= 0 && headers[at + 1]!.includes('immutable') ? headers : privately(headers)
}

/** The deployment that the request is for. `pinned` knows which ones it may be; all others are the current one. */
export function deploymentOf(request: IncomingMessage, { url, found, current }: Asked, snapshot: Snapshot): Target {
  const pinned = (id: string | undefined) => (id === undefined ? null : snapshot.pinned(found, id))
  const asked = pinned(/[?&]dpl=(dpl_[0-9a-z]{1,40})(?:&|$)/.exec(url)?.[1])
  if (asked) return asked
  return (isNavigation(request) ? null : pinned(cookiesOf(request, cookieName)[0])) ?? current
}

/** A page is remembered by its visitor; no shared cache keeps what depends on that. */
export function remember(request: IncomingMessage, response: EdgeResponse, { url, target, current }: Remembered): void {
  const { deploymentId } = target
  // A site may call immutable what is not named by its content: of an earlier one nobody else shall get it.
  const isShared = deploymentId === current.deploymentId || isNamedByContent(url.split('?', 1)[0]!.slice(1))
  response.adjust = both(response.adjust, isShared ? dependent : privately)
  if (!isNavigation(request)) return
  const secure = isEncrypted(request) ? '; Secure' : ''
  const cookie = `${cookieName}=${deploymentId}; Path=/; Max-Age=${visitSeconds}; HttpOnly; SameSite=Lax${secure}`
  response.adjust = both(response.adjust, (headers) => [...privately(headers), 'set-cookie', cookie])
}

/** Browsers say what they load; others ask for HTML. */
function isNavigation({ method, headers }: IncomingMessage): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false
  const mode = headers['sec-fetch-mode']
  if (mode !== undefined) return mode === 'navigate'
  return headers.accept?.includes('text/html') === true
}
