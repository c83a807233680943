// Calls of the API. A call is described first and sent later, so that its curl can be shown beside the button.
import { createFinalURL, createQuerySerializer, defaultPathSerializer } from 'openapi-fetch'
import { createBerth } from '../../../sdk/src/client.ts'
import type { AnswerOf, InitOf, ItemOf, ListPath, Method, PathOf, Schemas } from '../../../sdk/src/types.ts'
import type { Call } from './calls.ts'
import { askAuth, forgetToken, token } from './session.ts'

export { BerthError } from '../../../sdk/src/errors.ts'
export type { AnswerOf, ItemOf, ListPath, PathOf, Schemas }

/** The SDK, as customers have it: retries, Retry-After, Idempotency-Key; errors are a BerthError. */
export const berth = createBerth({
  baseUrl: `${location.origin}/api`,
  token,
  retries: 2,
  async fetch(request, init) {
    const again = request.clone()
    const response = await fetch(request, init)
    if (response.status !== 401) return response
    // Revoked or ended a moment ago: once more with a new one. Without a session, `token` goes to the sign-in page.
    forgetToken(request.headers.get('authorization')!.slice('Bearer '.length))
    again.headers.set('authorization', `Bearer ${await token()}`)
    return fetch(again, init)
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

/** A call of a route that the generated types do not have. */
export function callPath<T>(method: Method, path: string, init: Init = {}): Call<T> {
  return describe(method, path, init)
}

/** A call of `/auth`; it has no curl, because its cookie is for browsers alone. */
export function callAuth<T>(method: string, path: string, body?: unknown): Call<T> {
  const made: Call<T> = {
    key: `${method} /auth${path} ${JSON.stringify(body)}`,
    curl: null,
    send: () => askAuth<T>(method, path, body),
    from: () => made,
  }
  return made
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

const quoted = (text: string) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`)

export function curlOf(method: string, url: string, body?: unknown): string {
  const parts = ['curl', quoted(url), '-H "Authorization: Bearer $BERTH_TOKEN"']
  const implied = body === undefined ? 'GET' : 'POST'
  if (method !== implied) parts.splice(1, 0, `-X ${method}`)
  if (typeof body === 'string') parts.push('-H "Content-Type: text/dns"', '--data-binary @zone.txt')
  else if (body !== undefined) parts.push(`--json ${quoted(JSON.stringify(body))}`)
  return parts.join(' ')
}
