// Hostile uploads: rules that are matched against every request, and archives.
import { tarEnd, tarHeader, tarPadding } from '../../src/platform/files/tar.ts'
import type { Send, Surface } from './surface.ts'
import { exchange, head, repeat } from './wire.ts'

type Files = Record<string, string>

export function tarOf(files: Files): Buffer {
  const parts = Object.entries(files).flatMap(([path, text]) => {
    const content = Buffer.from(text)
    return [tarHeader({ kind: 'file', path, mode: 0o644, size: content.length }), content, tarPadding(content.length)]
  })
  return Buffer.concat([...parts, tarEnd])
}

const lines = (count: number, line: (n: number) => string) =>
  Array.from({ length: count }, (_, n) => line(n)).join('\n')
const index = { 'index.html': '<h1>Rules</h1>' }

/** Sites by shape; the world leaves out those that a deployment refuses. */
export const ruledSites: Record<string, Files> = {
  plain: index,
  'redirects with a splat': { ...index, _redirects: lines(1_000, (n) => `/a${n}/* /b/:splat 301`) },
  'redirects with placeholders': { ...index, _redirects: lines(1_000, (n) => `/:a/:b/:c/:d/${n} /x 301`) },
  'redirects by language': {
    ...index,
    _redirects: `/* /x 302 Language=${Array.from({ length: 127_000 }, (_, n) => n.toString(36)).join(',')}`,
  },
  'redirects by cookie': { ...index, _redirects: lines(1_000, (n) => `/* /x 302 Cookie=c${n}`) },
  'rules of headers': { ...index, _headers: lines(1_000, (n) => `/*/a/*/${n}\n  X-A: ${n}`) },
  'one rule of many headers': { ...index, _headers: `/*\n${lines(1_000, (n) => `  X-${n}: ${n}`)}` },
}

const requestsEach = 100
const longPath = `/${'a/'.repeat(1_000)}`

/** Consecutive requests on one connection for a page without a rule. */
const visits =
  (site: string, path = '/nothing-here'): Send =>
  ({ edgePort, sites }) => {
    const host = sites[site]
    if (host === undefined) return Promise.resolve('refused when deployed')
    const one = head({ path, host })
    const last = head({ path, host, headers: ['Connection: close'] })
    return exchange(edgePort, ...Array<Buffer>(requestsEach - 1).fill(one), last)
  }

export const rules: Surface = {
  plain: visits('plain'),
  shapes: {
    ...Object.fromEntries(
      Object.keys(ruledSites)
        .filter((name) => name !== 'plain')
        .map((name) => [name, visits(name)]),
    ),
    'placeholders and a long path': visits('redirects with placeholders', longPath),
    'splats and a long path': visits('rules of headers', longPath),
  },
}

/** Deploys an archive and waits until it is served. */
const deploy =
  (files: (bytes: number) => Buffer): Send =>
  async ({ apiPort, token, bytes }) => {
    const content = files(bytes)
    const headers = ['Connection: close', `Authorization: Bearer ${token}`, 'Content-Type: application/x-tar']
    const path = '/api/deployments?project=archives&prebuilt=true'
    const length = `Content-Length: ${content.length}`
    return exchange(apiPort, head({ method: 'POST', path, host: 'localhost', headers: [...headers, length] }), content)
  }

const blocks = (bytes: number) => Math.max(1, Math.floor(bytes / 1024) - 2)
const named = (bytes: number, path: (n: number) => string, text = '') =>
  tarOf(Object.fromEntries(Array.from({ length: blocks(bytes) }, (_, n) => [path(n), text])))

export const archives: Surface = {
  plain: deploy((bytes) => tarOf({ 'index.html': repeat('x', bytes - 2_048).toString() })),
  shapes: {
    'empty files': deploy((bytes) => named(2 * bytes, (n) => `f${n}`)),
    'files of one byte': deploy((bytes) => named(bytes, (n) => `f${n}`, 'x')),
    'deep directories': deploy((bytes) => named(bytes, (n) => `${'d/'.repeat(40)}${n}`)),
    'one path again and again': deploy((bytes) => repeat(tarOf({ a: '' }).subarray(0, 512), bytes)),
    'zero blocks': deploy((bytes) => Buffer.alloc(bytes)),
    'no archive at all': deploy((bytes) => repeat('x', bytes)),
  },
}
