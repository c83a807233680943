// A client for a bucket of an S3-compatible service: signs requests, limits their time, retries, and explains errors.
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { type IncomingMessage, Agent as PlainAgent, request as plainRequest } from 'node:http'
import { Agent, request } from 'node:https'
import { pipeline } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { AwsV4Signer } from 'aws4fetch'
import { rejectUnexpectedResponses } from '../../http/unexpected-responses.ts'
import { StoreUnavailable } from '../artifacts.ts'
import { createCircuitBreaker } from './circuit-breaker.ts'
import { type ListedObject, parseCode, parseList } from './xml.ts'

export type BucketOptions = {
  /** Base URL of the service; the bucket is the first part of the path. */
  endpoint: string
  region: string
  accessKey: string
  secretKey: string
  bucket: string
  /** Precedes every key: empty, or ends with a slash. */
  prefix: string
  /** How long the service may send nothing. */
  idleMs?: number
}

/** `body` is the content itself, or the path of a file with it. */
export type Content = { sha256: string; size: number; body: Buffer | string }

export type ObjectInfo = {
  size: number
  modifiedMs: number
  /** The hash that was passed to `put`. */
  sha256: string | null
}

export type Bucket = {
  head(key: string): Promise<ObjectInfo | null>
  /** The caller must read or destroy the body. If it is too slow or truncated, it fails with StoreUnavailable. */
  get(key: string): Promise<(ObjectInfo & { body: IncomingMessage }) | null>
  /** Stores the whole object or nothing. */
  put(key: string, content: Content): Promise<void>
  /** The service refuses requests signed more than 15 minutes ago, so `signedAt` limits when this can take effect. */
  delete(key: string, signedAt?: Date): Promise<void>
  /** In the order of the keys, 1,000 at a time. */
  list(prefix: string): AsyncGenerator<ListedObject[]>
  /** A sentence if the service can't be used. */
  readiness(): Promise<string | null>
  close(): void
}

/** How long a service accepts a signed request. */
export const signatureMs = 15 * 60_000

const defaultIdleMs = 10_000
// A GET only uses the first, because a visitor is waiting.
const retryDelaysMs = [200, 1_000]
const connections = 64
// A slower service counts as unavailable.
const maxDuration = { baseMs: 30_000, bytesPerMs: 256 }
const storeBytesPerMs = 50_000
const maxXmlBytes = 4 << 20
const readinessMs = 5_000
const nothing: Content = { sha256: createHash('sha256').digest('hex'), size: 0, body: Buffer.alloc(0) }

type ObjectRequest = { key?: string; query?: Record<string, string>; content?: Content; signedAt?: Date | undefined }

export function createBucket(options: BucketOptions): Bucket {
  const { region, accessKey, secretKey, bucket, prefix, idleMs = defaultIdleMs } = options
  const base = new URL(options.endpoint)
  const isPlain = base.protocol === 'http:'
  const agent = new (isPlain ? PlainAgent : Agent)({ keepAlive: true, maxSockets: connections, scheduling: 'lifo' })
  const cache = new Map<string, ArrayBuffer>()
  const breaker = createCircuitBreaker()
  const unavailable = (why: string, cause?: unknown) =>
    new StoreUnavailable(`The artifact store s3://${bucket} at ${base.host} ${why}.`, { cause })

  async function sign(method: string, { key, query, content = nothing, signedAt }: ObjectRequest) {
    const url = new URL(
      `${base.pathname.replace(/\/$/, '')}/${bucket}${key === undefined ? '' : `/${prefix}${key}`}`,
      base,
    )
    for (const [name, value] of Object.entries(query ?? {})) url.searchParams.set(name, value)
    const extraHeaders: Record<string, string> = { 'x-amz-content-sha256': content.sha256 }
    if (method === 'PUT') extraHeaders['x-amz-meta-sha256'] = content.sha256
    const credentials = { accessKeyId: accessKey, secretAccessKey: secretKey, service: 's3', region, cache }
    const datetime = (signedAt ?? new Date()).toISOString().replace(/[:-]|\.\d{3}/g, '')
    const { headers } = await new AwsV4Signer({
      method,
      url: url.href,
      headers: extraHeaders,
      datetime,
      ...credentials,
    }).sign()
    if (method === 'PUT') headers.set('content-length', String(content.size))
    return { url, headers: Object.fromEntries(headers) }
  }

  /** Resolves with the response once its head has arrived. */
  async function attempt(method: string, parts: ObjectRequest): Promise<IncomingMessage> {
    const { url, headers } = await sign(method, parts)
    const { body, size } = parts.content ?? nothing
    // A service may be silent for a long time while it stores a large object.
    const timeout = idleMs + size / storeBytesPerMs
    return new Promise((resolve, reject) => {
      const sent = (isPlain ? plainRequest : request)(url, { method, headers, agent, timeout })
      const limit = setTimeout(tooSlow, maxDuration.baseMs + size / maxDuration.bytesPerMs)
      function tooSlow() {
        sent.destroy(new Error('it takes too long'))
      }
      sent.on('timeout', () => sent.destroy(new Error(`nothing was heard for ${idleMs / 1000} s`)))
      sent.on('close', () => clearTimeout(limit))
      sent.on('error', (error: NodeJS.ErrnoException) => {
        const isStale = sent.reusedSocket && (error.code === 'ECONNRESET' || error.code === 'EPIPE')
        reject(isStale ? new StaleConnection(error.message, { cause: error }) : error)
      })
      sent.on('response', (response) => {
        clearTimeout(limit)
        blameStore(response)
        if (!sent.writableFinished) response.on('end', () => sent.destroy())
        resolve(response)
      })
      rejectUnexpectedResponses(sent, reject)
      // The response may arrive before everything is sent. What happens to the rest of the request doesn't matter then.
      if (typeof body !== 'string') return void sent.end(body)
      const file = createReadStream(body, { highWaterMark: 1 << 20 })
      file.on('error', (error) => reject(new LocalFailure(error.message, { cause: error })))
      pipeline(file, sent, (error) => error && reject(error))
    })
  }

  /** Returns a successful response: 2xx, or 404 for a key. */
  async function send(method: string, parts: ObjectRequest): Promise<IncomingMessage> {
    const outcome = breaker.start()
    let stale = 0
    try {
      for (let tries = 0; ; tries++) {
        const result = await attempt(method, parts).catch((error: Error) => error)
        if (result instanceof LocalFailure) throw result.cause
        // The service closed the connection while it was idle, so this only shows that we need another one.
        if (result instanceof StaleConnection && ++stale <= connections) {
          tries--
          continue
        }
        const isResponse = !(result instanceof Error)
        const failure = isResponse
          ? await faultOf(result, method, parts)
          : unavailable(`does not answer: ${result.message}`, result)
        if (isResponse && failure === null) {
          outcome.succeed()
          return result
        }
        const status = isResponse ? result.statusCode! : 0
        const isPassing = status === 0 || status >= 500 || status === 429 || status === 408
        if (!isPassing || tries === (method === 'GET' ? 1 : retryDelaysMs.length)) {
          if (status === 0 || status === 503) outcome.fail(failure!)
          throw failure
        }
        await sleep(retryDelaysMs[tries]! * (0.5 + Math.random()))
      }
    } finally {
      outcome.finish()
    }
  }

  /** Null if the response is a successful one. */
  async function faultOf(
    response: IncomingMessage,
    method: string,
    { key }: ObjectRequest,
  ): Promise<StoreUnavailable | null> {
    const { statusCode = 0 } = response
    if (statusCode >= 200 && statusCode < 300) return null
    const code = parseCode(await readAll(response, 64 << 10).catch(() => ''))
    if (statusCode === 404 && key !== undefined && code !== 'NoSuchBucket' && method !== 'PUT') return null
    const shown = `${statusCode}${code ? ` (${code})` : ''}`
    if (code === 'NoSuchBucket') return unavailable('does not exist')
    if (statusCode === 507 || /quota|full|capacity/i.test(code)) return unavailable(`has no room: ${shown}`)
    if (code === 'RequestTimeTooSkewed') return unavailable(`takes the clock of this machine for wrong: ${shown}`)
    if (statusCode === 401 || statusCode === 403)
      return unavailable(`refuses the access key or what it may do: ${shown}`)
    return unavailable(`answered ${shown}`)
  }

  function infoOf({ headers }: IncomingMessage): ObjectInfo {
    const size = Number(headers['content-length'] ?? Number.NaN)
    if (!Number.isSafeInteger(size)) throw unavailable('does not say how large an object is')
    const sha256 = headers['x-amz-meta-sha256']
    const modifiedMs = Date.parse(headers['last-modified'] ?? '')
    return { size, modifiedMs, sha256: typeof sha256 === 'string' ? sha256 : null }
  }

  async function* list(below: string): AsyncGenerator<ListedObject[]> {
    const query: Record<string, string> = { 'list-type': '2', prefix: prefix + below, 'max-keys': '1000' }
    for (;;) {
      const response = await send('GET', { query })
      const page = parseList(await readAll(response, maxXmlBytes))
      if (!page) throw unavailable('answered with no list of objects')
      const own = page.objects.filter(({ key }) => key.startsWith(prefix + below))
      yield own.map((one) => ({ ...one, key: one.key.slice(prefix.length) }))
      if (page.next === null) return
      if (query['continuation-token'] === page.next) throw unavailable('lists the same objects again and again')
      query['continuation-token'] = page.next
    }
  }

  let lastCheck: { atMs: number; problem: Promise<string | null> } | null = null
  async function check(): Promise<string | null> {
    try {
      const response = await send('GET', { query: { 'list-type': '2', prefix, 'max-keys': '1' } })
      await readAll(response, maxXmlBytes)
      return null
    } catch (error) {
      return (error as Error).message
    }
  }

  return {
    async head(key) {
      const response = await send('HEAD', { key })
      response.resume()
      return response.statusCode === 404 ? null : infoOf(response)
    },
    async get(key) {
      const body = await send('GET', { key })
      if (body.statusCode === 404) return null
      const found = infoOf(body)
      const limit = setTimeout(
        () => body.destroy(new Error('it takes too long')),
        maxDuration.baseMs + found.size / maxDuration.bytesPerMs,
      )
      body.on('close', () => clearTimeout(limit))
      return { ...found, body }
    },
    async put(key, content) {
      const response = await send('PUT', { key, content })
      await readAll(response, maxXmlBytes).catch(() => '')
    },
    async delete(key, signedAt) {
      const response = await send('DELETE', { key, signedAt })
      response.resume()
    },
    list,
    readiness() {
      if (!lastCheck || Date.now() - lastCheck.atMs > readinessMs) lastCheck = { atMs: Date.now(), problem: check() }
      return lastCheck.problem
    },
    close: () => agent.destroy(),
  }
}

/** A kept-alive connection broke before there was a response. */
class StaleConnection extends Error {}

/** The local file to send can't be read; a retry wouldn't help. */
class LocalFailure extends Error {}

const storeError = (error: Error) =>
  error instanceof StoreUnavailable
    ? error
    : new StoreUnavailable(`The artifact store broke off: ${error.message}.`, { cause: error })

/** Blames the store for whatever ends a response early, whoever reads it. */
function blameStore(response: IncomingMessage): void {
  const { destroy } = response
  response.destroy = (error?: Error) => destroy.call(response, error && storeError(error))
  // Without a listener, an error would end the process.
  response.on('error', () => {})
}

export async function readAll(response: IncomingMessage, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of response) {
    bytes += chunk.length
    if (bytes > maxBytes) throw new StoreUnavailable('The artifact store sent an answer that is too long.')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}
