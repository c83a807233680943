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
  return (await openSession()).secret
}

/** Who is signed in, and a new token. */
export function openSession(): Promise<Access> {
  renewal ??= renew().finally(() => {
    renewal = null
  })
  return renewal
}

async function renew(): Promise<Access> {
  try {
    const asked = askAuth<Me>('GET', '/me')
    const [made, known] = await Promise.all([mint(), asked]).catch(async (error) => {
      // In no account yet, but perhaps invited to one.
      if ((error as BerthError).status === 404) me.value = await asked
      throw error
    })
    const before = me.peek()
    // Somebody else signed in in another tab, or the account was left: nothing of the first may stay on the page.
    if (before && (before.user.id !== known.user.id || shownAccount !== made.account.id)) {
      location.assign('/')
      return await new Promise<never>(() => {})
    }
    shownAccount = made.account.id
    sessionStorage.setItem(chosenKey, shownAccount)
    me.value = known
    access.value = made
    return made
  } catch (error) {
    if ((error as BerthError).status === 401) leave()
    throw error
  }
}

let shownAccount: string | null = null

/** For the account of this tab, or else the one that was chosen last. */
async function mint(): Promise<Access> {
  const account = sessionStorage.getItem(chosenKey) ?? localStorage.getItem(chosenKey)
  try {
    return await askAuth<Access>('POST', '/token', account === null ? {} : { account })
  } catch (error) {
    // It may be another person's, or may have been left.
    if (account === null || (error as BerthError).status !== 404) throw error
    sessionStorage.removeItem(chosenKey)
    localStorage.removeItem(chosenKey)
    return askAuth<Access>('POST', '/token', {})
  }
}

/** After a 401: the token was refused though it should be good. */
export function forgetToken(secret: string): void {
  if (access.peek()?.secret === secret) access.value = null
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

/** Where the person wanted to go; only ever an address of this very origin. */
export function wantedPlace(): string {
  const next = new URLSearchParams(place.peek().search).get('next') ?? '/'
  // Parsed as the browser does, which drops tabs and reads // as a host.
  const url = URL.canParse(next, location.origin) ? new URL(next, location.origin) : null
  return url?.origin === location.origin ? url.href : location.origin
}

const nextKey = 'next'

/** Kept while another provider signs the person in, which sends them back to `/`. */
export function rememberPlace(): void {
  sessionStorage.setItem(nextKey, wantedPlace())
}

/** Null: nowhere else. */
export function placeBefore(): string | null {
  const next = sessionStorage.getItem(nextKey)
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
  sessionStorage.setItem(chosenKey, id)
  location.assign('/')
}

/** Whether the person may do it: buttons that would be refused are not shown. */
export function may(scope: string): boolean {
  const scopes = access.value?.scopes ?? []
  if (scopes.includes(scope)) return true
  return scope !== 'operator' && (scopes.includes('*') || scopes.includes(scope.replace(/:read$/, ':write')))
}
