// Responds with files, from memory or from disk: conditions, ranges and encodings.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Logger } from 'pino'
import { StoreUnavailable } from '../../../platform/artifacts/artifacts.ts'
import type { EdgeMetrics } from '../observe/metrics.ts'
import { type Bodies, maxInMemory } from './bodies.ts'
import { revalidateCaching } from './caching.ts'
import { preferenceOf } from './encodings.ts'
import { CopyAborted, copyFile } from './file-copy.ts'
import { type PageName, sendPage } from './pages.ts'
import { matchesTag, type Range, rangeOf } from './ranges.ts'
import { stallMs } from './responses.ts'
import type { RedirectRoute } from './routes.ts'
import { bareHeaders, choose, partialHeaders, type Variant, type Variants, variantOf } from './variants.ts'

/** Retry-After while the artifact store is unavailable: such outages are usually short. */
export const storeRetrySeconds = '5'

export type Responder = {
  file(request: IncomingMessage, response: ServerResponse, variants: Variants, status: 200 | 404): void
  redirect(response: ServerResponse, route: RedirectRoute): void
  page(response: ServerResponse, name: PageName, extra?: string[]): void
  /** Sends an error page, or aborts the response if it has begun, so that no partial body looks complete. */
  failure(response: ServerResponse, err: unknown): void
}

/** A response streamed from disk. `plain` replaces a compressed copy that is missing or damaged. */
type Part = { status: number; headers: string[]; variant: Variant; range: Range; plain: Variant }

export function createResponder(bodies: Bodies, metrics: EdgeMetrics, log: Logger): Responder {
  function page(response: ServerResponse, name: PageName, extra?: string[]): void {
    metrics.count(response, sendPage(response, name, extra))
  }

  function end(response: ServerResponse, status: number, headers: string[], body?: Buffer): void {
    response.writeHead(status, headers)
    response.end(body)
    metrics.count(response, body === undefined ? 0 : body.length)
  }

  function fail(
    response: ServerResponse,
    { status, variant, plain }: Omit<Part, 'range' | 'headers'>,
    err: unknown,
  ): void {
    log.error({ err, file: variant.key }, 'a file of a deployment could not be read')
    if (plain !== variant && !response.headersSent) sendWhole(response, status, plain, plain)
    else failure(response, err)
  }

  function failure(response: ServerResponse, err: unknown): void {
    if (response.headersSent) response.destroy()
    else if (err instanceof StoreUnavailable) page(response, 'storeUnavailable', ['retry-after', storeRetrySeconds])
    else page(response, 'failed')
  }

  function sendWhole(response: ServerResponse, status: number, variant: Variant, plain: Variant): void {
    const { headers, size } = variant
    const body = bodies.get(variant)
    if (body) return void end(response, status, headers, body)
    if (size > maxInMemory) {
      return void stream(response, { status, headers, variant, plain, range: { start: 0, end: size - 1 } })
    }
    bodies
      .load(variant)
      .then((body) => end(response, status, headers, body))
      .catch((err) => fail(response, { status, variant, plain }, err))
  }

  function sendRange(response: ServerResponse, variant: Variant, range: Range): void {
    const headers = [...partialHeaders(variant), 'content-range', `bytes ${range.start}-${range.end}/${variant.size}`]
    headers.push('content-length', String(range.end - range.start + 1))
    const body = bodies.get(variant)
    if (body) return void end(response, 206, headers, body.subarray(range.start, range.end + 1))
    stream(response, { status: 206, headers, variant, range, plain: variant })
  }

  function stream(response: ServerResponse, part: Part): void {
    copy(response, part).catch((err) => {
      // While the store is unavailable, nobody knows whether the file is damaged.
      if (!response.headersSent && !(err instanceof StoreUnavailable)) void bodies.report(part.variant)
      fail(response, part, err)
    })
  }

  async function copy(response: ServerResponse, { status, headers, variant, range }: Part): Promise<void> {
    const file = await bodies.open(variant)
    let sent = 0
    try {
      const { size } = await file.stat()
      if (size !== variant.size) throw new Error(`${variant.key} has ${size} bytes, not ${variant.size}`)
      if (response.destroyed) return
      response.writeHead(status, headers)
      response.setTimeout(stallMs)
      await copyFile(file, range, response, (bytes) => {
        sent += bytes
      })
    } catch (error) {
      // Visitors often disconnect in the middle of a file. Only disk errors are reported.
      if (!(error instanceof CopyAborted)) throw error
      response.destroy()
    } finally {
      if (response.headersSent) metrics.count(response, sent)
      await file.close()
    }
  }

  return {
    page,
    failure,
    redirect(response, { location, status }) {
      // Without Cache-Control, browsers cache 301 and 308 forever, even after the next deployment.
      end(response, status, ['location', location, 'cache-control', revalidateCaching, 'content-length', '0'])
    },
    file(request, response, variants, status) {
      const { headers } = request
      const wantsRange = headers.range !== undefined && status === 200 && request.method === 'GET'
      // Players and download managers expect ranges of the unencoded file.
      const variant = wantsRange
        ? variantOf(variants, 'identity')
        : choose(variants, preferenceOf(headers['accept-encoding']))
      const tags = headers['if-none-match']
      if (tags !== undefined && status === 200 && matchesTag(tags, variant.etag)) {
        return void end(response, 304, bareHeaders(variant))
      }
      if (request.method === 'HEAD') return void end(response, status, variant.headers)
      // If-Range with anything but this exact tag (a date, an older file, another encoding) gets the whole file.
      const ifRange = headers['if-range']
      if (wantsRange && (ifRange === undefined || ifRange === variant.etag)) {
        const range = rangeOf(headers.range, variant.size)
        if (range === 'unsatisfiable') {
          const size = ['content-range', `bytes */${variant.size}`, 'content-length', '0']
          return void end(response, 416, [...bareHeaders(variant), ...size])
        }
        if (range) return sendRange(response, variant, range)
      }
      sendWhole(response, status, variant, variantOf(variants, 'identity'))
    },
  }
}
