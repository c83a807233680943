// A bucket of an S3-compatible service: signed requests with time limits, a few tries each, and errors in words.
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { type IncomingMessage, Agent as PlainAgent, request as plainRequest } from 'node:http'
import { Agent, request } from 'node:https'
import { pipeline } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { AwsV4Signer } from 'aws4fetch'
import { refuseOddAnswers } from '../../http/odd-answers.ts'
import { StoreUnavailable } from '../artifacts.ts'
import { createGate } from './gate.ts'
import { type Listed, parseCode, parseList } from './xml.ts'

export type BucketOptions = {
  /** Base address of the service; the bucket is the first part of the path. */
  endpoint: string
  region: string
  accessKey: string
  secretKey: string
  bucket: string
  /** Before every key: empty, or with a slash at its end. */
  prefix: string
  /** How long nothing may be heard. */
  idleMs?: number
}

/** `body`: the bytes, or the path of a file that has them. */
export type Content = { sha256: string; size: number; body: Buffer | string }

export type Found = {
  size: number
  modifiedMs: number
  /** What `put` was told of the content. */
  sha256: string | null
}

export type Bucket = {
  head(key: string): Promise<Found | null>
  /** The body must be read, or destroyed. If it comes too slowly or not whole, it ends with StoreUnavailable. */
  get(key: string): Promise<(Found & { body: IncomingMessage }) | null>
  /** As a whole or not at all. */
  put(key: string, content: Content): Promise<void>
  /** The service refuses a request that is signed more than a quarter of an hour ago: it has no effect later than that. */
  delete(key: string, signedAt?: Date): Promise<void>
  /** In the order of the keys, a thousand at a time. */
  list(prefix: string): AsyncGenerator<Listed[]>
  /** A sentence if the service cannot be used. */
  readiness(): Promise<string | null>
  close(): void
}

/** After that a service takes no signed request any more. */
export const signatureMs = 15 * 60_000

const defaultIdleMs = 10_000
// Of a GET only the first: a visitor waits.
const retryDelaysMs = [200, 1_000]
const connections = 64
// Slower than that is as good as not at all.
const slowest = { ms: 30_000, bytesPerMs: 256 }
const quickest = 50_000
const maxXmlBytes = 4 << 20
const readinessMs = 5_000
const nothing: Content = { sha256: createHash('sha256').digest('hex'), size: 0, body: Buffer.alloc(0) }

type Asked = { key?: string; query?: Record<string, string>; content?: Content; signedAt?: Date | undefined }

export function createBucket(options: BucketOptions): Bucket {
  const { region, accessKey, secretKey, bucket, prefix, idleMs = defaultIdleMs } = options
  const base = new URL(options.endpoint)
  const isPlain = base.protocol === 'http:'
  const agent = new (isPlain ? PlainAgent : Agent)({ keepAlive: true, maxSockets: connections, scheduling: 'lifo' })
  const cache = new Map<string, ArrayBuffer>()
  const gate = createGate()
  const unavailable = (why: string, cause?: unknown) =>
    new StoreUnavailable(`The artifact store s3://${bucket} at ${base.host} ${why}.`, { cause })

  async function sign(method: string, { key, query, content = nothing, signedAt }: Asked) {
    const url = new URL(
      `${base.pathname.replace(/\/$/, '')}/${bucket}${key === undefined ? '' : `/${prefix}${key}`}`,
      base,
    )
    for (const [name, value] of Object.entries(query ?? {})) url.searchParams.set(name, value)
    const given: Record<string, string> = { 'x-amz-content-sha256': content.sha256 }
    if (method === 'PUT') given['x-amz-meta-sha256'] = content.sha256
    const credentials = { accessKeyId: accessKey, secretAccessKey: secretKey, service: 's3', region, cache }
    const datetime = (signedAt ?? new Date()).toISOString().replace(/[:-]|\.\d{3}/g, '')
    const { headers } = await new AwsV4Signer({
      method,
      url: url.href,
      headers: given,
      datetime,
      ...credentials,
    }).sign()
    if (method === 'PUT') headers.set('content-length', String(content.size))
    return { url, headers: Object.fromEntries(headers) }
  }

  /** The head of the answer; rejects if there is none. */
  async function attempt(method: string, asked: Asked): Promise<IncomingMessage> {
    const { url, headers } = await sign(method, asked)
    const { body, size } = asked.content ?? nothing
    // A service may be silent for long while it keeps something large.
    const timeout = idleMs + size / quickest
    return new Promise((resolve, reject) => {
      const sent = (isPlain ? plainRequest : request)(url, { method, headers, agent, timeout })
      const limit = setTimeout(tooSlow, slowest.ms + size / slowest.bytesPerMs)
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
        tellWhoBroke(response)
        if (!sent.writableFinished) response.on('end', () => sent.destroy())
        resolve(response)
      })
      refuseOddAnswers(sent, reject)
      // An answer may come before everything is sent; what goes wrong with the rest of it does not matter then.
      if (typeof body !== 'string') return void sent.end(body)
      const file = createReadStream(body, { highWaterMark: 1 << 20 })
      file.on('error', (error) => reject(new LocalFailure(error.message, { cause: error })))
      pipeline(file, sent, (error) => error && reject(error))
    })
  }

  /** An answer that is no failure of the service: 2xx, or 404 for a key. */
  async function send(method: string, asked: Asked): Promise<IncomingMessage> {
    const pass = gate.enter()
    let stale = 0
    try {
      for (let tries = 0; ; tries++) {
        const found = await attempt(method, asked).catch((error: Error) => error)
        if (found instanceof LocalFailure) throw found.cause
        // The service had closed it since its last use: all that is known is that another connection is needed.
        if (found instanceof StaleConnection && ++stale <= connections) {
          tries--
          continue
        }
        const isAnswer = !(found instanceof Error)
        const failure = isAnswer
          ? await faultOf(found, method, asked)
          : unavailable(`does not answer: ${found.message}`, found)
        if (isAnswer && failure === null) {
          pass.succeed()
          return found
        }
        const status = isAnswer ? found.statusCode! : 0
        const isPassing = status === 0 || status >= 500 || status === 429 || status === 408
        if (!isPassing || tries === (method === 'GET' ? 1 : retryDelaysMs.length)) {
          if (status === 0 || status === 503) pass.fail(failure!)
          throw failure
        }
        await sleep(retryDelaysMs[tries]! * (0.5 + Math.random()))
      }
    } finally {
      pass.leave()
    }
  }

  /** Null if the answer is one that was asked for. */
  async function faultOf(response: IncomingMessage, method: string, { key }: Asked): Promise<StoreUnavailable | null> {
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

  function foundOf({ headers }: IncomingMessage): Found {
    const size = Number(headers['content-length'] ?? Number.NaN)
    if (!Number.isSafeInteger(size)) throw unavailable('does not say how large an object is')
    const sha256 = headers['x-amz-meta-sha256']
    const modifiedMs = Date.parse(headers['last-modified'] ?? '')
    return { size, modifiedMs, sha256: typeof sha256 === 'string' ? sha256 : null }
  }

  async function* list(wanted: string): AsyncGenerator<Listed[]> {
    const query: Record<string, string> = { 'list-type': '2', prefix: prefix + wanted, 'max-keys': '1000' }
    for (;;) {
      const response = await send('GET', { query })
      const page = parseList(await readAll(response, maxXmlBytes))
      if (!page) throw unavailable('answered with no list of objects')
      const own = page.objects.filter(({ key }) => key.startsWith(prefix + wanted))
      yield own.map((one) => ({ ...one, key: one.key.slice(prefix.length) }))
      if (page.next === null) return
      if (query['continuation-token'] === page.next) throw unavailable('lists the same objects again and again')
      query['continuation-token'] = page.next
    }
  }

  let asked: { atMs: number; answer: Promise<string | null> } | null = null
  async function ask(): Promise<string | null> {
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
      return response.statusCode === 404 ? null : foundOf(response)
    },
    async get(key) {
      const body = await send('GET', { key })
      if (body.statusCode === 404) return null
      const found = foundOf(body)
      const limit = setTimeout(
        () => body.destroy(new Error('it takes too long')),
        slowest.ms + found.size / slowest.bytesPerMs,
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
      if (!asked || Date.now() - asked.atMs > readinessMs) asked = { atMs: Date.now(), answer: ask() }
      return asked.answer
    },
    close: () => agent.destroy(),
  }
}

/** A connection that was kept broke before there was an answer. */
class StaleConnection extends Error {}

/** The file of this machine that was to be sent cannot be read; it is not there at the next try either. */
class LocalFailure extends Error {}

const brokenOff = (error: Error) =>
  error instanceof StoreUnavailable
    ? error
    : new StoreUnavailable(`The artifact store broke off: ${error.message}.`, { cause: error })

/** Whatever ends an answer early is the store's fault, for everybody who reads it. */
function tellWhoBroke(response: IncomingMessage): void {
  const { destroy } = response
  response.destroy = (error?: Error) => destroy.call(response, error && brokenOff(error))
  // Without a reader an error must not end the process.
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
