// Hostile bodies of API requests: their framing and their content.
import * as payloads from './payloads.ts'
import { type Repeated, written } from './payloads.ts'
import { pieceSizes, type Send, type Surface, surface, type Target } from './surface.ts'
import { chunked, exchange, head, repeat } from './wire.ts'

type Asked = { method: string; path: (target: Target) => string; type: string; anonymous?: boolean }

const headersOf = ({ token }: Target, { type, anonymous }: Asked) => [
  'Connection: close',
  `Content-Type: ${type}`,
  ...(anonymous ? [] : [`Authorization: Bearer ${token}`]),
]

function send(asked: Asked, length: (bytes: number) => string, payload: (bytes: number) => Buffer): Send {
  return (target) => {
    const path = `/api${asked.path(target)}`
    const headers = [...headersOf(target, asked), length(target.bytes)]
    const { method } = asked
    return exchange(target.apiPort, head({ method, path, host: 'localhost', headers }), payload(target.bytes))
  }
}

const inChunks = (asked: Asked, size: number) =>
  send(
    asked,
    () => 'Transfer-Encoding: chunked',
    (bytes) => chunked(bytes, size),
  )

const password: Asked = { method: 'POST', path: () => '/auth/password', type: 'application/json', anonymous: true }
const hook: Asked = { method: 'POST', path: () => '/hooks/deploy/x', type: 'application/json', anonymous: true }
const ticket: Asked = { method: 'POST', path: () => '/tickets', type: 'application/json' }
const upload: Asked = { method: 'PUT', path: () => `/uploads/${'0'.repeat(64)}`, type: 'application/octet-stream' }
const zone: Asked = { method: 'PUT', path: ({ zone }) => `/dns/${zone}/zone?dryRun=true`, type: 'text/dns' }
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
    Object.entries(sorts).flatMap(([name, asked]) =>
      pieceSizes.map((size) => [`${name} in chunks of ${size}`, inChunks(asked, size)]),
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
