// An in-memory S3 service, strict where it matters: it checks signatures, payload hashes and clocks, supports
// `If-None-Match: *`, splits lists into pages, and fails on demand.
import { createHash, createHmac } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { BucketOptions } from '../../src/platform/artifacts/bucket/client.ts'

export type StoredObject = { body: Buffer; sha256: string | undefined; modifiedMs: number }

/**
 * The fault of a request: an error; no response; a closed or reset connection; half a body, then closed or reset; no
 * HTTP; another protocol; another body; nothing is stored.
 */
export type Trouble =
  | { status: number; code: string }
  | ('hang' | 'close' | 'reset' | 'cut' | 'reset halfway' | 'garbage' | 'upgrade' | 'lie' | 'forget')

export type S3Server = {
  options: BucketOptions
  environment: Record<string, string>
  /** By key, without the prefix. */
  objects: Map<string, StoredObject>
  /** `<method> <key>` of all accepted requests. */
  requests: string[]
  /** Chooses the fault of a request; the key has no prefix, and is empty for lists. */
  trouble: ((method: string, key: string) => Trouble | null | Promise<Trouble | null>) | null
  /** Open connections, and those to reset on their next request. */
  sockets: Set<Socket>
  reset: ((socket: Socket) => boolean) | null
  /** The number of requests with this method and key prefix. */
  count(method: string, key: string): number
  close(): Promise<void>
}

const bucket = 'artifacts'
const prefix = 'berth/'
const accessKey = 'test-access-key'
const secretKey = 'test-secret-key'
const region = 'us-east-1'
const skewMs = 15 * 60_000
const pageSize = 7

export async function startS3(): Promise<S3Server> {
  const objects = new Map<string, StoredObject>()
  const requests: string[] = []
  const hanging = new Set<ServerResponse>()
  const sockets = new Set<Socket>()
  const server = createServer((request, response) => {
    answer(request, response).catch((error) => {
      if (!response.headersSent) response.writeHead(500)
      response.end(String(error))
    })
  })
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  const self: S3Server = {
    options: { endpoint, region, accessKey, secretKey, bucket, prefix, idleMs: 2_000 },
    environment: {
      ARTIFACTS_URL: `s3://${bucket}/${prefix.slice(0, -1)}`,
      ARTIFACTS_ENDPOINT: endpoint,
      ARTIFACTS_ACCESS_KEY: accessKey,
      ARTIFACTS_SECRET_KEY: secretKey,
    },
    objects,
    requests,
    trouble: null,
    sockets,
    reset: null,
    count: (method, key) => requests.filter((one) => one.startsWith(`${method} ${key}`)).length,
    async close() {
      for (const response of hanging) response.destroy()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (self.reset?.(request.socket)) return void request.socket.resetAndDestroy()
    const url = new URL(request.url!, endpoint)
    const { method = '' } = request
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const body = Buffer.concat(chunks)
    const refusal = refusalOf(request, url, body)
    if (refusal) return fail(response, ...refusal)
    const [, name, path = ''] = /^\/([^/]*)\/?(.*)$/s.exec(decodeURIComponent(url.pathname)) ?? []
    if (name !== bucket) return fail(response, 404, 'NoSuchBucket')
    const key = path.startsWith(prefix) ? path.slice(prefix.length) : path
    const trouble = (await self.trouble?.(method, key)) ?? null
    requests.push(`${method} ${key}`)
    if (trouble === 'hang') return void hanging.add(response)
    if (trouble === 'close') return void response.destroy()
    if (trouble === 'reset') return void request.socket.resetAndDestroy()
    if (trouble === 'garbage') return void request.socket.end('no HTTP at all\r\n\r\n')
    if (trouble === 'upgrade') {
      return void request.socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n')
    }
    if (trouble !== null && typeof trouble === 'object') return fail(response, trouble.status, trouble.code)
    if (path === '') return list(response, url)
    if (method === 'PUT') return put(request, response, key, trouble === 'forget' ? null : body)
    if (method === 'DELETE') {
      objects.delete(key)
      return void response.writeHead(204).end()
    }
    const found = objects.get(key)
    if (!found) return fail(response, 404, 'NoSuchKey')
    const headers: Record<string, string | number> = {
      'content-length': found.body.length,
      'last-modified': new Date(found.modifiedMs).toUTCString(),
      etag: `"${createHash('md5').update(found.body).digest('hex')}"`,
    }
    if (found.sha256) headers['x-amz-meta-sha256'] = found.sha256
    response.writeHead(200, headers)
    if (method === 'HEAD') return void response.end()
    if (trouble === 'cut' || trouble === 'reset halfway') {
      response.write(found.body.subarray(0, found.body.length >> 1))
      const end = () => (trouble === 'cut' ? response.destroy() : request.socket.resetAndDestroy())
      return void setTimeout(end, 20)
    }
    response.end(trouble === 'lie' ? Buffer.from(found.body.map((byte) => byte ^ 1)) : found.body)
  }

  function put(request: IncomingMessage, response: ServerResponse, key: string, body: Buffer | null): void {
    if (request.headers['if-none-match'] === '*' && objects.has(key)) {
      fail(response, 412, 'PreconditionFailed')
      return
    }
    const sha256 = request.headers['x-amz-meta-sha256'] as string | undefined
    if (body) objects.set(key, { body, sha256, modifiedMs: Date.now() })
    response.writeHead(200).end()
  }

  function list(response: ServerResponse, url: URL): void {
    const wanted = url.searchParams.get('prefix') ?? ''
    const after = url.searchParams.get('continuation-token') ?? ''
    const keys = [...objects.keys()].map((key) => prefix + key).filter((key) => key.startsWith(wanted) && key > after)
    keys.sort()
    const page = keys.slice(0, Math.min(pageSize, Number(url.searchParams.get('max-keys') ?? 1000)))
    const contents = page.map((key) => {
      const { body, modifiedMs } = objects.get(key.slice(prefix.length))!
      return `<Contents><Key>${key}</Key><LastModified>${new Date(modifiedMs).toISOString()}</LastModified><Size>${body.length}</Size></Contents>`
    })
    const isCut = keys.length > page.length
    const next = isCut ? `<NextContinuationToken>${page.at(-1)}</NextContinuationToken>` : ''
    response.writeHead(200, { 'content-type': 'application/xml' })
    response.end(
      `<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><IsTruncated>${isCut}</IsTruncated>${next}${contents.join('')}</ListBucketResult>`,
    )
  }

  return self
}

function fail(response: ServerResponse, status: number, code: string): void {
  // Like real services, it repeats what must not be logged.
  const text = `<Error><Code>${code}</Code><AWSAccessKeyId>${accessKey}</AWSAccessKeyId></Error>`
  response.writeHead(status, { 'content-type': 'application/xml', 'content-length': text.length })
  response.end(response.req.method === 'HEAD' ? undefined : text)
}

/** Signature Version 4, written from its specification. */
function refusalOf(request: IncomingMessage, url: URL, body: Buffer): [number, string] | null {
  const { headers } = request
  const pattern =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, SignedHeaders=([^,]+), Signature=(\w+)$/
  const [, id, date, place, signed, signature] = pattern.exec(headers.authorization ?? '') ?? []
  const time = String(headers['x-amz-date'])
  if (id !== accessKey || place !== region || !time.startsWith(`${date}T`)) return [403, 'InvalidAccessKeyId']
  const at = Date.parse(time.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'))
  if (!(Math.abs(Date.now() - at) < skewMs)) return [403, 'RequestTimeTooSkewed']
  const names = signed!.split(';')
  const all = Object.keys(headers).filter((name) => name === 'host' || name.startsWith('x-amz-'))
  if (all.some((name) => !names.includes(name))) return [403, 'AccessDenied']
  const payload = String(headers['x-amz-content-sha256'])
  const encode = (text: string) =>
    encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
  const path = decodeURIComponent(url.pathname).split('/').map(encode).join('/')
  const query = [...url.searchParams].map(([key, value]) => `${encode(key)}=${encode(value)}`).sort()
  const canonical = [
    ...[request.method, path, query.join('&'), ...names.map((name) => `${name}:${headers[name]}`)],
    ...['', signed, payload],
  ].join('\n')
  const scope = `${date}/${place}/s3/aws4_request`
  const text = ['AWS4-HMAC-SHA256', time, scope, createHash('sha256').update(canonical).digest('hex')].join('\n')
  const key = [date!, place!, 's3', 'aws4_request'].reduce<string | Buffer>(
    (key, part) => createHmac('sha256', key).update(part).digest(),
    `AWS4${secretKey}`,
  )
  if (createHmac('sha256', key).update(text).digest('hex') !== signature) return [403, 'SignatureDoesNotMatch']
  if (payload !== createHash('sha256').update(body).digest('hex')) return [400, 'XAmzContentSHA256Mismatch']
  return null
}
