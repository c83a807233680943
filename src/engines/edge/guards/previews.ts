// Protection of previews: visitors of a deployment's own host show a cookie, a link or a password first.
import { createHmac, randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { LRUCache } from 'lru-cache'
import { createPasswordHasher, type PasswordHasher } from '../../../platform/secrets/password-hash.ts'
import type { Vault } from '../../../platform/secrets/secrets.ts'
import { allPreviews, type Pass, readPass, shareParameter, signPass } from '../../../services/projects/index.ts'
import { challengeFolder } from '../../../tls/challenges.ts'
import { both, privately } from '../answer/private-answers.ts'
import type { Responder } from '../answer/respond.ts'
import type { EdgeResponse } from '../answer/responses.ts'
import { isEncrypted, pathOf } from '../hosts/host-header.ts'
import type { Gate, Host } from '../hosts/targets.ts'
import { cookiesOf } from './cookies.ts'
import { readForm } from './forms.ts'
import { type Asking, sendAsking } from './preview-page.ts'
import { createTries } from './tries.ts'

export type Previews = {
  /** Whether the request may go on; it is answered, or about to be, if not. */
  admits(request: IncomingMessage, response: EdgeResponse, asked: { url: string; found: Host }): boolean
  /** The same of an upgrade, which is not answered here. */
  admitsUpgrade(request: IncomingMessage, found: Host): boolean
}

export type PreviewOptions = {
  /** Without it nobody is admitted. */
  vault: Vault | undefined
  respond: Responder
  count(response: EdgeResponse, bytes: number): void
  hasher?: PasswordHasher
}

export const unlockPath = '/.berth/unlock'
const maxKnown = 10_000
const visitMs = 7 * 24 * 60 * 60_000

// Bound to the host by the browser, where it can be: no page of another host can set one of this name.
const cookieName = (request: IncomingMessage) => (isEncrypted(request) ? '__Host-berth_preview' : 'berth_preview')

export function createPreviews({ vault, respond, count, hasher = createPasswordHasher() }: PreviewOptions): Previews {
  const tries = createTries()
  // Right ones, by a keyed hash: they may be sent without end, and the slow check is shared by all projects.
  const known = new LRUCache<string, true>({ max: maxKnown })
  const knownKey = randomBytes(32)

  /** What opens a host: of its deployment, or of the whole project. */
  function opens(found: Host, pass: Pass | null): pass is Pass {
    return pass !== null && (pass.scope === allPreviews || pass.scope === found.target?.deploymentId)
  }

  const keyOf = (found: Host, { version }: Gate) => ({ projectId: found.projectId, version })

  function holdsCookie(request: IncomingMessage, found: Host, gate: Gate): boolean {
    if (!vault) return false
    const values = cookiesOf(request, cookieName(request)).slice(0, 4)
    return values.some((value) => opens(found, readPass(vault, 'cookie', keyOf(found, gate), value)))
  }

  function ask(response: EdgeResponse, asking: Asking, extra: string[] = []): void {
    const { method } = response.req
    // A body that is not read ends the connection.
    const end = method === 'GET' || method === 'HEAD' ? [] : ['connection', 'close']
    count(response, sendAsking(response, asking, [...extra, ...end]))
  }

  /** Gives the visitor a cookie and sends them on to an address without secrets. */
  function letIn(request: IncomingMessage, response: EdgeResponse, to: string, { value, pass }: Given): void {
    const seconds = Math.max(1, Math.floor((pass.expiresMs - Date.now()) / 1000))
    const cookie = `${cookieName(request)}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; Secure; SameSite=Lax`
    response.writeHead(303, [
      ...['location', to, 'set-cookie', cookie, 'cache-control', 'private, no-store'],
      ...['referrer-policy', 'no-referrer', 'content-length', '0'],
    ])
    response.end()
    count(response, 0)
  }

  function give(found: Host, gate: Gate, pass: Pass): Given {
    return { pass, value: signPass(vault!, 'cookie', keyOf(found, gate), pass) }
  }

  /** Null where too many wait for the slow check already. */
  async function isRight(password: string, passwordHash: string): Promise<boolean | null> {
    const name = createHmac('sha256', knownKey).update(`${passwordHash} ${password}`).digest('base64')
    if (known.get(name)) return true
    const right = await hasher.verify(password, passwordHash).catch(() => null)
    if (right) known.set(name, true)
    return right
  }

  async function unlock(request: IncomingMessage, response: EdgeResponse, found: Host, gate: Gate): Promise<void> {
    const form = await readForm(request)
    if (response.destroyed) return
    const to = ownPath(form?.get('to') ?? '/')
    const password = form?.get('password') ?? ''
    if (!vault || gate.passwordHash === null || password === '') return ask(response, { gate, to, text: 'wrong' })
    const wait = tries.take(found.projectId, request.socket.remoteAddress ?? '')
    if (wait !== null) return ask(response, { gate, to, text: 'tooMany' }, ['retry-after', String(wait)])
    const right = await isRight(password, gate.passwordHash)
    if (right !== false) tries.giveBack(found.projectId, request.socket.remoteAddress ?? '')
    if (response.destroyed) return
    if (right === null) return ask(response, { gate, to, text: 'busy' }, ['retry-after', '5'])
    if (!right) return ask(response, { gate, to, text: 'wrong' })
    letIn(request, response, to, give(found, gate, { scope: allPreviews, expiresMs: Date.now() + visitMs }))
  }

  function admits(request: IncomingMessage, response: EdgeResponse, { url, found }: { url: string; found: Host }) {
    const gate = found.gate!
    response.adjust = both(response.adjust, privately)
    // Authorities are answered before; what else asks there learns nothing about the site.
    if (url.startsWith(challengeFolder)) {
      respond.page(
        response,
        'notFound',
        request.method === 'GET' || request.method === 'HEAD' ? [] : ['connection', 'close'],
      )
      return false
    }
    const path = url.split('?', 1)[0]!
    if (path === unlockPath && request.method === 'POST' && gate.kind === 'password') {
      unlock(request, response, found, gate).catch(() => response.destroy())
      return false
    }
    const link = linkIn(url)
    if (link && (request.method === 'GET' || request.method === 'HEAD')) {
      const pass = vault ? readPass(vault, 'link', keyOf(found, gate), link.signature) : null
      if (opens(found, pass)) letIn(request, response, link.rest, give(found, gate, pass))
      else ask(response, { gate, to: link.rest, text: 'badLink' })
      return false
    }
    if (holdsCookie(request, found, gate)) return true
    ask(response, { gate, to: path === unlockPath ? '/' : ownPath(url), text: 'first' })
    return false
  }

  return {
    admits,
    admitsUpgrade: (request, found) => found.gate === null || holdsCookie(request, found, found.gate),
  }
}

type Given = { value: string; pass: Pass }

/** A path of this host, and of no other, as a header may have it. */
function ownPath(text: string): string {
  const path = pathOf(text)
  return /^\/(?![/\\])/.test(path) && path.length <= 2_000 ? path : '/'
}

/** The signature of a link, and its address without it; null if there is none. */
function linkIn(url: string): { signature: string; rest: string } | null {
  const mark = url.indexOf('?')
  if (mark < 0 || !url.includes(shareParameter)) return null
  const parts = url.slice(mark + 1).split('&')
  const own = parts.find((part) => part.startsWith(`${shareParameter}=`))
  if (own === undefined) return null
  const left = parts.filter((part) => !part.startsWith(`${shareParameter}=`)).join('&')
  const rest = ownPath(url.slice(0, mark) + (left === '' ? '' : `?${left}`))
  return { signature: own.slice(shareParameter.length + 1), rest }
}
