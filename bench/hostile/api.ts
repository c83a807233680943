// Hostile bodies of API requests: their framing and their content.
import * as payloads from './payloads.ts'
import { type Repeated, written } from './payloads.ts'
import { pieceSizes, type Send, type Surface, surface, type Target } from './surface.ts'
import { chunked, exchange, head, repeat } from './wire.ts'

type Endpoint = { method: string; path: (target: Target) => string; type: string; anonymous?: boolean }

const headersOf = ({ token }: Target, { type, anonymous }: Endpoint) => [
  'Connection: close',
  `Content-Type: ${type}`,
  ...(anonymous ? [] : [`Authorization: Bearer ${token}`]),
]

function send(endpoint: Endpoint, length: (bytes: number) => string, payload: (bytes: number) => Buffer): Send {
  return (target) => {
    const path = `/api${endpoint.path(target)}`
    const headers = [...headersOf(target, endpoint), length(target.bytes)]
    const { method } = endpoint
    return exchange(target.apiPort, head({ method, path, host: 'localhost', headers }), payload(target.bytes))
  }
}

const inChunks = (endpoint: Endpoint, size: number) =>
  send(
    endpoint,
    () => 'Transfer-Encoding: chunked',
    (bytes) => chunked(bytes, size),
  )

const password: Endpoint = { method: 'POST', path: () => '/auth/password', type: 'application/json', anonymous: true }
const hook: Endpoint = { method: 'POST', path: () => '/hooks/deploy/x', type: 'application/json', anonymous: true }
const ticket: Endpoint = { method: 'POST', path: () => '/tickets', type: 'application/json' }
const upload: Endpoint = { method: 'PUT', path: () => `/uploads/${'0'.repeat(64)}`, type: 'application/octet-stream' }
const zone: Endpoint = { method: 'PUT', path: ({ zone }) => `/dns/${zone}/zone?dryRun=true`, type: 'text/dns' }
const sorts = {
  'a password': password,
  'a deploy hook': hook,
  'a ticket': ticket,
  'an upload': upload,
  'a zone file': zone,
}

export const apiBodies: Surface = {
  plain: send(
    upload,
    (bytes) => `Content-Length: ${bytes}`,
    (bytes) => repeat('x', bytes),
  ),
  shapes: Object.fromEntries(
    Object.entries(sorts).flatMap(([name, endpoint]) =>
      pieceSizes.map((size) => [`${name} in chunks of ${size}`, inChunks(endpoint, size)]),
    ),
  ),
}

const documentBytes = 60 << 10

/** As many 60 KB documents as there are bytes. */
function documents(payload: Repeated): Send {
  const text = written(payload, documentBytes)
  const once = send(
    ticket,
    () => `Content-Length: ${text.length}`,
    () => text,
  )
  return async (target) => {
    let ended = ''
    for (let left = target.bytes; left > 0; left -= documentBytes) ended = await once(target)
    return ended
  }
}

export const json: Surface = surface(payloads.documents, documents)
