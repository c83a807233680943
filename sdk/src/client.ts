// The client: calls, lists, waiting and streams.
import createClient, { defaultPathSerializer } from 'openapi-fetch'
import { BerthError, DeploymentFailed, DomainFailed, InvalidResponse } from './errors.ts'
import type { paths } from './generated/api.ts'
import { createRetryingFetch, pause } from './retry.ts'
import { follow, type Open, type StreamOptions } from './streams.ts'
import type {
  AnswerOf,
  ApiClient,
  Deployment,
  Domain,
  Event,
  InitOf,
  ItemOf,
  ListPath,
  LogLine,
  Method,
  PageOf,
  PathOf,
} from './types.ts'

export type BerthOptions = {
  /** Ends in `/api`. */
  baseUrl: string
  /** A function is called before every request, for rotated tokens. */
  token: string | (() => string | Promise<string>)
  /** The maximum number of retries (default: 4). */
  retries?: number
  /** The timeout of one attempt (default: 90 s). */
  timeoutMs?: number
  fetch?: (input: Request, init?: RequestInit) => Promise<Response>
}

export type WaitOptions = {
  signal?: AbortSignal
}

type Call<M extends Method> = <P extends PathOf<M>>(path: P, ...init: InitOf<P, M>) => Promise<AnswerOf<P, M>>

type EventQuery = NonNullable<paths['/events']['get']['parameters']['query']>
type OneOrMore<T> = T extends readonly (infer One)[] ? One | T : T

/** The filters of the event list that the stream has too. */
export type EventFilter = { [K in 'type' | 'subject']?: OneOrMore<NonNullable<EventQuery[K]>> }

export type Berth = {
  /** These resolve to the response body, and throw a `BerthError` for statuses of 400 and above. */
  get: Call<'get'>
  post: Call<'post'>
  put: Call<'put'>
  patch: Call<'patch'>
  delete: Call<'delete'>
  /** All items of a list, loaded page by page while you loop. */
  list<P extends ListPath>(path: P, ...init: InitOf<P, 'get'>): AsyncGenerator<ItemOf<P>, void, undefined>
  /** The pages of a list. */
  pages<P extends ListPath>(path: P, ...init: InitOf<P, 'get'>): AsyncGenerator<PageOf<P>, void, undefined>
  /** Resolves when the deployment is READY; throws `DeploymentFailed` if it ends otherwise. */
  waitUntilReady(deploymentId: string, options?: WaitOptions): Promise<Deployment>
  /** Resolves when the domain is verified and has its certificate; throws `DomainFailed` if we can't issue it. */
  waitUntilActive(domain: string, options?: WaitOptions): Promise<Domain>
  /** Live events, from now or after `lastEventId`, without gaps or duplicates. */
  events(filter?: EventFilter, options?: StreamOptions): AsyncGenerator<Event, void, undefined>
  /** The live log of a deployment from its start; ends with the build. */
  logs(deploymentId: string, options?: StreamOptions): AsyncGenerator<LogLine, void, undefined>
  /** openapi-fetch itself, with the same retries: `{ data, error, response }`, for headers such as ETag. */
  raw: ApiClient
}

const maxWaitSeconds = 60
const maxPageLength = 100
const maxEmptyPages = 1_000
// A server that shuts down responds to waiting requests at once.
const minWaitMs = 1_000

// biome-ignore lint/suspicious/noExplicitAny: the methods are typed by `Berth`, path by path.
type Untyped = any

export function createBerth(options: BerthOptions): Berth {
  const { baseUrl, token, retries = 4, timeoutMs = 90_000 } = options
  // Looked up at each call, and called without a receiver, as browsers require.
  const fetch: NonNullable<BerthOptions['fetch']> = options.fetch ?? ((input, init) => globalThis.fetch(input, init))
  const raw = createClient<paths>({
    baseUrl,
    fetch: createRetryingFetch({ fetch, retries, timeoutMs }),
    pathSerializer: refuseDots,
    bodySerializer: (body: unknown) => (isRaw(body) ? body : JSON.stringify(body)),
  })
  raw.use({
    async onRequest({ request, schemaPath }) {
      request.headers.set('authorization', `Bearer ${typeof token === 'function' ? await token() : token}`)
      const type = rawTypes[schemaPath]
      if (type && request.headers.has('content-type')) request.headers.set('content-type', type)
    },
  })

  const waitSeconds = Math.max(1, Math.min(maxWaitSeconds, Math.floor(timeoutMs / 1500)))
  const untyped = raw as Untyped
  const call = (method: string) => (path: string, init?: Untyped) => send(method, path, init)
  async function send(method: string, path: string, init: Untyped = {}): Promise<Untyped> {
    const parseAs = method === 'GET' && isZone(path) ? 'text' : 'json'
    const { data, error, response } = await untyped[method](path, { parseAs, ...init }).catch(asInvalid)
    if (!response.ok) throw new BerthError(response, error)
    const isJson = parseAs === 'json' && init.parseAs === undefined && response.status !== 204
    if (isJson && !isObject(data)) throw invalid(response)
    if (init.parseAs === 'stream' && !data) throw invalid(response)
    return data
  }
  const get = call('GET')
  const itemsOf = (page: object) => Object.values(page).find(Array.isArray)

  async function* pages(path: string, init: Untyped = {}): AsyncGenerator<Untyped> {
    const { params } = init
    let cursor: string | undefined
    const seen = new Set<string>()
    let empty = 0
    for (;;) {
      const query = { limit: maxPageLength, ...params?.query, ...(cursor && { cursor }) }
      const page = await get(path, { ...init, params: { ...params, query } })
      yield page
      // Older servers have a cursor on the last page too.
      if (page.hasMore === false || !page.nextCursor) return
      cursor = String(page.nextCursor)
      if (itemsOf(page)?.length) empty = 0
      // Otherwise the loop would never end.
      if (seen.has(cursor) || ++empty > maxEmptyPages) throw new InvalidResponse('The server sent an endless list.')
      seen.add(cursor)
    }
  }

  async function* list(path: string, init?: Untyped): AsyncGenerator<Untyped> {
    for await (const page of pages(path, init)) {
      const items = itemsOf(page)
      if (!items) throw new InvalidResponse('The server sent a malformed list.')
      yield* items
    }
  }

  /** Long-polls until `isSettled`; the server responds when something has changed. */
  async function until(
    path: string,
    params: object,
    isSettled: (it: Untyped) => boolean,
    { signal }: WaitOptions = {},
  ) {
    const read = (wait?: number) => get(path, { params: { path: params, query: { wait } }, signal })
    for (;;) {
      const startedMs = Date.now()
      const found = await read(waitSeconds).catch((error) => {
        // The account is at its limit of waiting requests.
        if (error.problem?.limit === 'waits') return read()
        throw error
      })
      if (isSettled(found)) return found
      await pause(Math.max(0, minWaitMs - (Date.now() - startedMs)), signal)
    }
  }

  const opener =
    (path: string, params: object): Open =>
    (init) =>
      send('GET', path, { params, parseAs: 'stream', ...init })

  async function* events(filter: EventFilter = {}, streamOptions: StreamOptions = {}): AsyncGenerator<Event> {
    const { signal } = streamOptions
    // Without it, events before the first received one would be lost if the connection breaks.
    const newest = async () => (await get('/events', { params: { query: { limit: 1 } }, signal })).events?.[0]?.id
    const lastEventId = streamOptions.lastEventId ?? (await newest())
    for await (const { data } of follow(opener('/events', { query: filter }), { lastEventId, signal })) {
      yield parseMessage(data)
    }
  }

  async function* logs(id: string, streamOptions: StreamOptions = {}): AsyncGenerator<LogLine> {
    const open = opener('/deployments/{id}/logs', { path: { id } })
    for await (const { event, data } of follow(open, streamOptions)) {
      if (event === 'end') return
      yield parseMessage(data)
    }
  }

  const methods: Record<keyof Berth, unknown> = {
    get,
    post: call('POST'),
    put: call('PUT'),
    patch: call('PATCH'),
    delete: call('DELETE'),
    list,
    pages,
    async waitUntilReady(id: string, waitOptions?: WaitOptions) {
      const isSettled = ({ state }: Deployment) => state !== 'BUILDING'
      const deployment = await until('/deployments/{id}', { id }, isSettled, waitOptions)
      if (deployment.state !== 'READY') throw new DeploymentFailed(deployment)
      return deployment
    },
    async waitUntilActive(name: string, waitOptions?: WaitOptions) {
      const isSettled = ({ verified, ssl }: Domain) => verified && ssl !== 'PENDING' && ssl !== 'ISSUING'
      const domain = await until('/domains/{name}', { name }, isSettled, waitOptions)
      if (domain.ssl !== 'ACTIVE') throw new DomainFailed(domain)
      return domain
    },
    events,
    logs,
    raw,
  }
  return methods as Berth
}

const isObject = (it: unknown) => typeof it === 'object' && it !== null && !Array.isArray(it)

const invalid = ({ status }: Response) =>
  new InvalidResponse(`The server responded with ${status}, but not with a JSON object.`)

/** Reports a body that isn't JSON as the server's error. */
function asInvalid(error: unknown): never {
  if (error instanceof SyntaxError) throw new InvalidResponse('The server responded, but not with a JSON object.')
  throw error
}

function parseMessage(data: string): Untyped {
  try {
    const message = JSON.parse(data)
    if (isObject(message)) return message
  } catch {}
  throw new InvalidResponse('The server sent a malformed message.')
}

/** URLs drop dot segments, so `/projects/./hook` would mean a project named `hook`. */
function refuseDots(path: string, params: Record<string, unknown>): string {
  const invalid = Object.entries(params).find(([, value]) => /^\.{0,2}$/.test(String(value)))
  if (invalid) throw new TypeError(`${invalid[0]} must not be "${invalid[1]}"`)
  return defaultPathSerializer(path, params)
}

/** The content types of bodies that aren't JSON. */
const rawTypes: Record<string, string> = {
  '/dns/{domain}/zone': 'text/dns',
  '/deployments/archive': 'application/octet-stream',
  '/uploads': 'application/x-tar',
  '/uploads/{sha256}': 'application/octet-stream',
}

const isRaw = (body: unknown): body is string | Blob | ArrayBufferView<ArrayBuffer> =>
  typeof body === 'string' || body instanceof Blob || ArrayBuffer.isView(body)

function isZone(path: string): boolean {
  return path.endsWith('/zone')
}
