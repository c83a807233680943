// Protects previews: visitors of a deployment's own host need a cookie, a link or a password.
import { createHmac, randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { LRUCache } from 'lru-cache'
import { createPasswordHasher, type PasswordHasher } from '../../../platform/secrets/password-hash.ts'
import type { Vault } from '../../../platform/secrets/secrets.ts'
import { allPreviews, type Pass, readPass, shareParameter, signPass } from '../../../services/projects/index.ts'
import { challengeFolder } from '../../../tls/challenges.ts'
import { inOrder, makePrivate } from '../answer/header-changes.ts'
import type { Responder } from '../answer/respond.ts'
import type { EdgeResponse } from '../answer/responses.ts'
import { isEncrypted, pathOf } from '../hosts/host-header.ts'
import type { Gate, Host } from '../hosts/targets.ts'
import { createAttemptLimits } from './attempt-limits.ts'
import { cookiesOf } from './cookies.ts'
import { readForm } from './forms.ts'
import { sendUnlockPage, type UnlockPage } from './preview-page.ts'

export type Previews = {
  /** If false, the response has been or is about to be sent. */
  admits(request: IncomingMessage, response: EdgeResponse, asked: { url: string; found: Host }): boolean
  /** Like `admits`, but never responds. */
  admitsUpgrade(request: IncomingMessage, found: Host): boolean
}

export type PreviewOptions = {
  /** Without a vault, nobody is admitted. */
  vault: Vault | undefined
  respond: Responder
  count(response: EdgeResponse, bytes: number): void
  hasher?: PasswordHasher
}

export const unlockPath = '/.berth/unlock'
const maxCorrectPasswords = 10_000
const visitMs = 7 * 24 * 60 * 60_000

// Over HTTPS, browsers bind the prefix `__Host-` to the host, so no other host's page can set this cookie.
const cookieName = (request: IncomingMessage) => (isEncrypted(request) ? '__Host-berth_preview' : 'berth_preview')

export function createPreviews({ vault, respond, count, hasher = createPasswordHasher() }: PreviewOptions): Previews {
  const attempts = createAttemptLimits()
  // Hashes of correct passwords. Visitors may send those without limit, and all projects share the slow check.
  const correctPasswords = new LRUCache<string, true>({ max: maxCorrectPasswords })
  const hashKey = randomBytes(32)

  /** A pass is for one deployment or for the whole project. */
  function opens(found: Host, pass: Pass | null): pass is Pass {
    return pass !== null && (pass.scope === allPreviews || pass.scope === found.target?.deploymentId)
  }

  const keyOf = (found: Host, { version }: Gate) => ({ projectId: found.projectId, version })

  function hasCookie(request: IncomingMessage, found: Host, gate: Gate): boolean {
    if (!vault) return false
    const values = cookiesOf(request, cookieName(request)).slice(0, 4)
    return values.some((value) => opens(found, readPass(vault, 'cookie', keyOf(found, gate), value)))
  }

  function sendPage(response: EdgeResponse, unlockPage: UnlockPage, extra: string[] = []): void {
    const { method } = response.req
    // We don't read a body, so the connection can't be reused.
    const end = method === 'GET' || method === 'HEAD' ? [] : ['connection', 'close']
    count(response, sendUnlockPage(response, unlockPage, [...extra, ...end]))
  }

  /** Sets a cookie and redirects to a URL without secrets. */
  function admit(request: IncomingMessage, response: EdgeResponse, to: string, { value, pass }: Cookie): void {
    const seconds = Math.max(1, Math.floor((pass.expiresMs - Date.now()) / 1000))
    const cookie = `${cookieName(request)}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; Secure; SameSite=Lax`
    response.writeHead(303, [
      ...['location', to, 'set-cookie', cookie, 'cache-control', 'private, no-store'],
      ...['referrer-policy', 'no-referrer', 'content-length', '0'],
    ])
    response.end()
    count(response, 0)
  }

  function createCookie(found: Host, gate: Gate, pass: Pass): Cookie {
    return { pass, value: signPass(vault!, 'cookie', keyOf(found, gate), pass) }
  }

  /** Null if too many visitors are waiting for the slow check. */
  async function isCorrect(password: string, passwordHash: string): Promise<boolean | null> {
    const name = createHmac('sha256', hashKey).update(`${passwordHash} ${password}`).digest('base64')
    if (correctPasswords.get(name)) return true
    const correct = await hasher.verify(password, passwordHash).catch(() => null)
    if (correct) correctPasswords.set(name, true)
    return correct
  }

  async function unlock(request: IncomingMessage, response: EdgeResponse, found: Host, gate: Gate): Promise<void> {
    const form = await readForm(request)
    if (response.destroyed) return
    const to = ownPath(form?.get('to') ?? '/')
    const password = form?.get('password') ?? ''
    if (!vault || gate.passwordHash === null || password === '') return sendPage(response, { gate, to, text: 'wrong' })
    const wait = attempts.count(found.projectId, request.socket.remoteAddress ?? '')
    if (wait !== null) return sendPage(response, { gate, to, text: 'tooManyAttempts' }, ['retry-after', String(wait)])
    const correct = await isCorrect(password, gate.passwordHash)
    if (correct !== false) attempts.refund(found.projectId, request.socket.remoteAddress ?? '')
    if (response.destroyed) return
    if (correct === null) return sendPage(response, { gate, to, text: 'busy' }, ['retry-after', '5'])
    if (!correct) return sendPage(response, { gate, to, text: 'wrong' })
    admit(request, response, to, createCookie(found, gate, { scope: allPreviews, expiresMs: Date.now() + visitMs }))
  }

  function admits(request: IncomingMessage, response: EdgeResponse, { url, found }: { url: string; found: Host }) {
    const gate = found.gate!
    response.changeHeaders = inOrder(response.changeHeaders, makePrivate)
    // Challenges of certificate authorities were answered earlier. Other requests here learn nothing about the site.
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
    const link = findShareLink(url)
    if (link && (request.method === 'GET' || request.method === 'HEAD')) {
      const pass = vault ? readPass(vault, 'link', keyOf(found, gate), link.signature) : null
      if (opens(found, pass)) admit(request, response, link.rest, createCookie(found, gate, pass))
      else sendPage(response, { gate, to: link.rest, text: 'badLink' })
      return false
    }
    if (hasCookie(request, found, gate)) return true
    sendPage(response, { gate, to: path === unlockPath ? '/' : ownPath(url), text: 'first' })
    return false
  }

  return {
    admits,
    admitsUpgrade: (request, found) => found.gate === null || hasCookie(request, found, found.gate),
  }
}

type Cookie = { value: string; pass: Pass }

/** A path that can't lead to another host, safe to put into a header. */
function ownPath(text: string): string {
  const path = pathOf(text)
  return /^\/(?![/\\])/.test(path) && path.length <= 2_000 ? path : '/'
}

/** The signature in a share link, and the URL without it; null if there is none. */
function findShareLink(url: string): { signature: string; rest: string } | null {
  const mark = url.indexOf('?')
  if (mark < 0 || !url.includes(shareParameter)) return null
  const parts = url.slice(mark + 1).split('&')
  const own = parts.find((part) => part.startsWith(`${shareParameter}=`))
  if (own === undefined) return null
  const left = parts.filter((part) => !part.startsWith(`${shareParameter}=`)).join('&')
  const rest = ownPath(url.slice(0, mark) + (left === '' ? '' : `?${left}`))
  return { signature: own.slice(shareParameter.length + 1), rest }
}
