// Who is signed in, and the short-lived token for API calls, which is kept only in memory.
import { signal } from '@preact/signals'
import { BerthError } from '../../../sdk/src/errors.ts'
import { currentUrl, go } from './router.tsx'

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
    emailProved: boolean
    name: string
    operator: boolean
    totp: boolean
    password: boolean
    mutedMails: string[]
  }
  memberships: { account: AccountName; role: Role; projects: string[] | null }[]
  invitations: { id: string; account: AccountName; role: Role }[]
  session: { id: string }
}

export const access = signal<Access | null>(null)
export const me = signal<Me | null>(null)

/** How far the server's clock is ahead of ours. */
let aheadMs = 0
export const serverNow = () => Date.now() + aheadMs

const renewBeforeMs = 60_000
const chosenKey = 'account'

/** Calls `/auth` with the session cookie. Throws a BerthError. */
export async function requestAuth<T>(method: string, path: string, body?: unknown): Promise<T> {
  const response = await fetch(`/auth${path}`, {
    method,
    ...(body !== undefined && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
  })
  const date = Date.parse(response.headers.get('date') ?? '')
  // The header has whole seconds.
  if (!Number.isNaN(date)) aheadMs = Math.abs(date - Date.now()) < 2_000 ? 0 : date - Date.now()
  const text = await response.text()
  const parsed = /json/.test(response.headers.get('content-type') ?? '') && text ? JSON.parse(text) : undefined
  if (!response.ok) throw new BerthError(response, parsed)
  return parsed as T
}

let renewal: Promise<Access> | null = null

/** The token to send. Concurrent callers share one renewal. */
export async function token(): Promise<string> {
  const current = access.peek()
  if (current && Date.parse(current.expiresAt) - serverNow() > renewBeforeMs) return current.secret
  return (await openSession()).secret
}

/** Loads who is signed in, and a new token. */
export function openSession(): Promise<Access> {
  renewal ??= renew().finally(() => {
    renewal = null
  })
  return renewal
}

async function renew(): Promise<Access> {
  try {
    const request = requestAuth<Me>('GET', '/me')
    const [created, person] = await Promise.all([createToken(), request]).catch(async (error) => {
      // Not a member of any account, but perhaps invited to one.
      if ((error as BerthError).status === 404) me.value = await request
      throw error
    })
    const before = me.peek()
    // Someone else signed in in another tab, or the person left the account: discard everything on the page.
    if (before && (before.user.id !== person.user.id || shownAccount !== created.account.id)) {
      location.assign('/')
      return await new Promise<never>(() => {})
    }
    shownAccount = created.account.id
    sessionStorage.setItem(chosenKey, shownAccount)
    me.value = person
    access.value = created
    return created
  } catch (error) {
    if ((error as BerthError).status === 401) leave()
    throw error
  }
}

let shownAccount: string | null = null

/** For the account of this tab, or else the last chosen one. */
async function createToken(): Promise<Access> {
  const account = sessionStorage.getItem(chosenKey) ?? localStorage.getItem(chosenKey)
  try {
    return await requestAuth<Access>('POST', '/token', account === null ? {} : { account })
  } catch (error) {
    // The account may be another person's, or one that this person left.
    if (account === null || (error as BerthError).status !== 404) throw error
    sessionStorage.removeItem(chosenKey)
    localStorage.removeItem(chosenKey)
    return requestAuth<Access>('POST', '/token', {})
  }
}

/** After a 401, which an unexpired token got. */
export function dropToken(secret: string): void {
  if (access.peek()?.secret === secret) access.value = null
}

export async function readMe(): Promise<void> {
  me.value = await requestAuth<Me>('GET', '/me')
}

/** The session has ended: go to the sign-in page, which returns here. */
export function leave(): void {
  access.value = null
  me.value = null
  const { path, search } = currentUrl.peek()
  if (path === '/sign-in' || path === '/setup') return
  const next = path + search
  go(next === '/' ? '/sign-in' : `/sign-in?next=${encodeURIComponent(next)}`, { replace: true })
}

/** The URL to open after the sign-in, always on this origin. */
export function returnUrl(): string {
  const next = new URLSearchParams(currentUrl.peek().search).get('next') ?? '/'
  // Parsed like the browser does, which drops tabs and takes // for a host.
  const url = URL.canParse(next, location.origin) ? new URL(next, location.origin) : null
  return url?.origin === location.origin ? url.href : location.origin
}

const nextKey = 'next'

/** Stores the URL while an identity provider, which returns to `/`, signs the person in. */
export function saveReturnUrl(): void {
  sessionStorage.setItem(nextKey, returnUrl())
}

/** Returns the stored URL once, or null. */
export function takeReturnUrl(): string | null {
  const next = sessionStorage.getItem(nextKey)
  sessionStorage.removeItem(nextKey)
  return next
}

export async function signOut(): Promise<void> {
  await requestAuth('DELETE', '/session')
  // Reloading discards all loaded data.
  location.assign('/sign-in')
}

export function switchAccount(id: string): void {
  localStorage.setItem(chosenKey, id)
  sessionStorage.setItem(chosenKey, id)
  location.assign('/')
}

/** Whether the person has the scope; actions that would be refused are hidden. */
export function may(scope: string): boolean {
  const scopes = access.value?.scopes ?? []
  if (scopes.includes(scope)) return true
  return scope !== 'operator' && (scopes.includes('*') || scopes.includes(scope.replace(/:read$/, ':write')))
}
