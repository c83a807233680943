// Who is signed in, and the short-lived token that every call of the API carries. It is kept in memory alone.
import { signal } from '@preact/signals'
import { BerthError } from '../../../sdk/src/errors.ts'
import { go, place } from './router.tsx'

export type Role = 'owner' | 'admin' | 'developer' | 'viewer'
export type AccountName = { id: string; name: string }

export type Access = {
  secret: string
  expiresAt: string
  account: AccountName
  role: Role
  scopes: string[]
  /** Null: all projects. */
  projects: string[] | null
}

export type Me = {
  user: {
    id: string
    email: string
    name: string
    operator: boolean
    totp: boolean
    password: boolean
    mutedMails: string[]
  }
  memberships: { account: AccountName; role: Role; projects: string[] | null }[]
  session: { id: string }
}

export const access = signal<Access | null>(null)
export const me = signal<Me | null>(null)

/** How far the server's clock is ahead of this one. */
let aheadMs = 0
export const serverNow = () => Date.now() + aheadMs

const renewBeforeMs = 60_000
const chosenKey = 'account'

/** A request of `/auth`, which reads the session's cookie. Throws a BerthError. */
export async function askAuth<T>(method: string, path: string, body?: unknown): Promise<T> {
  const response = await fetch(`/auth${path}`, {
    method,
    ...(body !== undefined && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
  })
  const date = Date.parse(response.headers.get('date') ?? '')
  // The header has whole seconds.
  if (!Number.isNaN(date)) aheadMs = Math.abs(date - Date.now()) < 2_000 ? 0 : date - Date.now()
  const text = await response.text()
  const answer = /json/.test(response.headers.get('content-type') ?? '') && text ? JSON.parse(text) : undefined
  if (!response.ok) throw new BerthError(response, answer)
  return answer as T
}

let renewal: Promise<Access> | null = null

/** The token to send. One renewal at a time serves all who ask. */
export async function token(): Promise<string> {
  const held = access.peek()
  if (held && Date.parse(held.expiresAt) - serverNow() > renewBeforeMs) return held.secret
  return (await renew()).secret
}

export function renew(): Promise<Access> {
  renewal ??= askForToken().finally(() => {
    renewal = null
  })
  return renewal
}

async function askForToken(): Promise<Access> {
  const account = localStorage.getItem(chosenKey) ?? undefined
  try {
    const made = await askAuth<Access>('POST', '/token', { account }).catch((error) => {
      // The account that was chosen last may be another person's, or may have been left.
      if (account === undefined || error.status === 401 || error.status >= 500) throw error
      localStorage.removeItem(chosenKey)
      return askAuth<Access>('POST', '/token', {})
    })
    access.value = made
    return made
  } catch (error) {
    if ((error as BerthError).status === 401) leave()
    throw error
  }
}

/** After a 401: the token was refused though it should be good. */
export function forgetToken(secret: string): void {
  if (access.peek()?.secret === secret) access.value = null
}

export async function openSession(): Promise<void> {
  const [known] = await Promise.all([askAuth<Me>('GET', '/me'), token()])
  me.value = known
}

export async function readMe(): Promise<void> {
  me.value = await askAuth<Me>('GET', '/me')
}

/** The session is gone: to the sign-in page, and back afterwards. */
export function leave(): void {
  access.value = null
  me.value = null
  const { path, search } = place.peek()
  if (path === '/sign-in' || path === '/setup') return
  const next = path + search
  go(next === '/' ? '/sign-in' : `/sign-in?next=${encodeURIComponent(next)}`, { replace: true })
}

/** Where the person wanted to go; only ever a path of this page. */
export function wantedPlace(): string {
  const next = new URLSearchParams(place.peek().search).get('next') ?? ''
  return /^\/(?![/\\])/.test(next) ? next : '/'
}

const nextKey = 'next'

/** Kept while another provider signs the person in, which sends them back to `/`. */
export function rememberPlace(): void {
  sessionStorage.setItem(nextKey, wantedPlace())
}

export function placeBefore(): string {
  const next = sessionStorage.getItem(nextKey) ?? '/'
  sessionStorage.removeItem(nextKey)
  return next
}

export async function signOut(): Promise<void> {
  await askAuth('DELETE', '/session')
  // Everything that was read goes with the page.
  location.assign('/sign-in')
}

export function switchAccount(id: string): void {
  localStorage.setItem(chosenKey, id)
  location.assign('/')
}

/** Whether the person may do it: buttons that would be refused are not shown. */
export function may(scope: string): boolean {
  const scopes = access.value?.scopes ?? []
  if (scopes.includes(scope)) return true
  return scope !== 'operator' && (scopes.includes('*') || scopes.includes(scope.replace(/:read$/, ':write')))
}
