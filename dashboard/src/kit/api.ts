// API calls. A call is described first and sent later, so that its curl can be shown next to the button.
import { createFinalURL, createQuerySerializer, defaultPathSerializer } from 'openapi-fetch'
import { createBerth } from '../../../sdk/src/client.ts'
import type { AnswerOf, InitOf, ItemOf, ListPath, Method, PathOf, Schemas } from '../../../sdk/src/types.ts'
import type { Call } from './calls.ts'
import { dropToken, requestAuth, token } from './session.ts'

export { BerthError } from '../../../sdk/src/errors.ts'
export type { AnswerOf, ItemOf, ListPath, PathOf, Schemas }

/** The public SDK: retries, Retry-After, Idempotency-Key; errors are a BerthError. */
export const berth = createBerth({
  baseUrl: `${location.origin}/api`,
  token,
  retries: 2,
  async fetch(request, init) {
    const retried = request.clone()
    const response = await fetch(request, init)
    if (response.status !== 401) return response
    // Revoked or expired just now: retry once with a new one. Without a session, `token` goes to the sign-in page.
    dropToken(request.headers.get('authorization')!.slice('Bearer '.length))
    retried.headers.set('authorization', `Bearer ${await token()}`)
    return fetch(retried, init)
  },
})

type Init = { params?: { path?: Record<string, unknown>; query?: Record<string, unknown> }; body?: unknown }
// biome-ignore lint/suspicious/noExplicitAny: the paths are typed by `call`.
const untyped = berth as any

/** `call('get', '/projects/{project}', { params: { path: { project: 'docs' } } })` */
export function call<M extends Method, P extends PathOf<M>>(
  method: M,
  path: P,
  ...init: InitOf<P, M>
): Call<AnswerOf<P, M>> {
  return describe(method, path, (init[0] ?? {}) as Init)
}

/** A call of a route that the generated types lack. */
export function callPath<T>(method: Method, path: string, init: Init = {}): Call<T> {
  return describe(method, path, init)
}

/** A call of `/auth`. It has no curl, because only browsers have its cookie. */
export function callAuth<T>(method: string, path: string, body?: unknown): Call<T> {
  const authCall: Call<T> = {
    key: `${method} /auth${path} ${JSON.stringify(body)}`,
    curl: null,
    send: () => requestAuth<T>(method, path, body),
    from: () => authCall,
  }
  return authCall
}

function describe<T>(method: string, path: string, init: Init): Call<T> {
  const url = createFinalURL(path, {
    baseUrl: `${location.origin}/api`,
    params: { path: init.params?.path, query: init.params?.query },
    querySerializer: createQuerySerializer(),
    pathSerializer: defaultPathSerializer,
  })
  const curl = curlOf(method.toUpperCase(), url, init.body)
  return {
    key: curl,
    curl,
    send: (signal) => untyped[method](path, { ...init, signal }),
    from: (cursor) => {
      const { params } = init
      return describe(method, path, { ...init, params: { ...params, query: { ...params?.query, cursor } } })
    },
  }
}

const quote = (text: string) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`)

export function curlOf(method: string, url: string, body?: unknown): string {
  const parts = ['curl', quote(url), '-H "Authorization: Bearer $BERTH_TOKEN"']
  const implied = body === undefined ? 'GET' : 'POST'
  if (method !== implied) parts.splice(1, 0, `-X ${method}`)
  if (typeof body === 'string') parts.push('-H "Content-Type: text/dns"', '--data-binary @zone.txt')
  else if (body !== undefined) parts.push(`--json ${quote(JSON.stringify(body))}`)
  return parts.join(' ')
}
