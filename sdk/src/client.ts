// The client: calls that resolve to the body of the answer, lists, waiting and streams.
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
  /** A function is asked before every request: for tokens that are rotated. */
  token: string | (() => string | Promise<string>)
  /** How often a request is sent again when that is safe: 4 unless said otherwise. */
  retries?: number
  /** How long one attempt may take: 90 s unless said otherwise. */
  timeoutMs?: number
  fetch?: (input: Request, init?: RequestInit) => Promise<Response>
}

export type WaitOptions = {
  signal?: AbortSignal
}

type Call<M extends Method> = <P extends PathOf<M>>(path: P, ...init: InitOf<P, M>) => Promise<AnswerOf<P, M>>

type EventQuery = NonNullable<paths['/events']['get']['parameters']['query']>
type OneOrMore<T> = T extends readonly (infer One)[] ? One | T : T

/** What of the list's filters its stream has too. */
export type EventFilter = { [K in 'type' | 'subject']?: OneOrMore<NonNullable<EventQuery[K]>> }

export type Berth = {
  /** Resolve to the body of the answer, and throw a `BerthError` for every status of 400 or more. */
  get: Call<'get'>
  post: Call<'post'>
  put: Call<'put'>
  patch: Call<'patch'>
  delete: Call<'delete'>
  /** All items of a list, read page by page as the loop goes on. */
  list<P extends ListPath>(path: P, ...init: InitOf<P, 'get'>): AsyncGenerator<ItemOf<P>, void, undefined>
  /** The same, a page at a time. */
  pages<P extends ListPath>(path: P, ...init: InitOf<P, 'get'>): AsyncGenerator<PageOf<P>, void, undefined>
  /** Resolves when the deployment is READY; throws `DeploymentFailed` if it ends otherwise. */
  waitUntilReady(deploymentId: string, options?: WaitOptions): Promise<Deployment>
  /** Resolves when the domain is verified and has its certificate; throws `DomainFailed` if it cannot be issued. */
  waitUntilActive(domain: string, options?: WaitOptions): Promise<Domain>
  /** Events as they happen, from now on or behind `lastEventId`, without a gap or a repeat. */
  events(filter?: EventFilter, options?: StreamOptions): AsyncGenerator<Event, void, undefined>
  /** The log of a deployment from its beginning, as it is written; ends with the deployment's build. */
  logs(deploymentId: string, options?: StreamOptions): AsyncGenerator<LogLine, void, undefined>
  /** openapi-fetch itself, with the same retries: `{ data, error, response }`, for headers such as ETag. */
  raw: ApiClient
}

const maxWaitSeconds = 60
const maxPageLength = 100
const maxEmptyPages = 1_000
// A server that stops answers its waits at once.
const betweenWaitsMs = 1_000

// biome-ignore lint/suspicious/noExplicitAny: the methods are typed by `Berth`, path by path.
type Untyped = any

export function createBerth(options: BerthOptions): Berth {
  const { baseUrl, token, retries = 4, timeoutMs = 90_000 } = options
  // Looked up at each call, and called without a receiver, as browsers want it.
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
      // Nothing more would come, and its reader would never hear of it.
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

  /** Reads until it is settled; the server answers when something has changed. */
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
        // Others of the account wait already, as many as may.
        if (error.problem?.limit === 'waits') return read()
        throw error
      })
      if (isSettled(found)) return found
      await pause(Math.max(0, betweenWaitsMs - (Date.now() - startedMs)), signal)
    }
  }

  const opener =
    (path: string, params: object): Open =>
    (init) =>
      send('GET', path, { params, parseAs: 'stream', ...init })

  async function* events(filter: EventFilter = {}, streamOptions: StreamOptions = {}): AsyncGenerator<Event> {
    const { signal } = streamOptions
    // Without it, what happens before the first event is read would be lost if the connection breaks off.
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
  new InvalidResponse(`The server responded with ${status}, but not with JSON of the API.`)

/** A body that isn't JSON is the server's error. */
function asInvalid(error: unknown): never {
  if (error instanceof SyntaxError) throw new InvalidResponse('The server responded, but not with JSON of the API.')
  throw error
}

function parseMessage(data: string): Untyped {
  try {
    const message = JSON.parse(data)
    if (isObject(message)) return message
  } catch {}
  throw new InvalidResponse('The server sent a malformed message.')
}

/** URLs drop such a segment, so that `/projects/./hook` would be the project of the name `hook`. */
function refuseDots(path: string, params: Record<string, unknown>): string {
  const wrong = Object.entries(params).find(([, value]) => /^\.{0,2}$/.test(String(value)))
  if (wrong) throw new TypeError(`${wrong[0]} must not be "${wrong[1]}"`)
  return defaultPathSerializer(path, params)
}

/** Of bodies that aren't JSON. */
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
