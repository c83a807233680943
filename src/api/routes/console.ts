// The console: its page and its files. Without a build there is no console.
import { readdir, readFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { Fault } from '../../platform/errors.ts'
import { root } from '../../platform/installation.ts'
import { addVary } from '../http/responses/compression.ts'
import { type PublicAnswer, publicAnswer, sendPublic } from '../http/responses/public-responses.ts'
import { boundOpenPerAddress } from '../http/shares/shares.ts'

const hidden = { schema: { hide: true } } as const

/** The first parts of the console's paths, apart from `/`. */
const sections = [
  'projects',
  'deployments',
  'domains',
  'dns',
  'events',
  'webhooks',
  'tokens',
  'tickets',
  'members',
  'account',
  'me',
  'operator',
  'sign-in',
  'setup',
  'device',
]

const types: Record<string, string> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}

export const consolePolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; form-action 'self'; " +
  "frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'"

const pageHeaders = {
  'content-security-policy': consolePolicy,
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'permissions-policy':
    'camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=(), publickey-credentials-get=(self), publickey-credentials-create=(self), clipboard-write=(self)',
}

// Many people may share an address, and a page has a dozen files.
const maxOpen = 1_000
const maxOpenPerAddress = 200

export type Console = { page: PublicAnswer; files: Map<string, PublicAnswer> }

/** Null if the console wasn't built. */
export async function readConsole(directory = join(root, 'dist/dashboard')): Promise<Console | null> {
  const assets = join(directory, 'assets')
  const names = await readdir(assets).catch(() => [])
  const files = new Map<string, PublicAnswer>()
  for (const name of names.filter((it) => types[extname(it)])) {
    files.set(name, await readBuilt(join(assets, name), types[extname(name)]!, 'for ever'))
  }
  if (files.size === 0) return null
  return { page: await readBuilt(join(directory, 'index.html'), 'text/html; charset=utf-8', 'ask again'), files }
}

async function readBuilt(path: string, type: string, caching: PublicAnswer['caching']): Promise<PublicAnswer> {
  const answer = publicAnswer(type, await readFile(path), caching)
  answer.encoded.set('br', Promise.resolve(await readFile(`${path}.br`)))
  answer.encoded.set('gzip', Promise.resolve(await readFile(`${path}.gz`)))
  return answer
}

export function sendConsole(request: FastifyRequest, reply: FastifyReply, { page }: Console): Promise<FastifyReply> {
  reply.headers(pageHeaders)
  return sendPublic(request, reply, page)
}

export const wantsPage = (request: FastifyRequest) => /html/.test(request.headers.accept ?? '')

export const consoleRoutes: FastifyPluginAsync<{ built: Console | null }> = async (app, { built }) => {
  if (!built) return
  boundOpenPerAddress(app, maxOpenPerAddress, maxOpen)
  const send = (request: FastifyRequest, reply: FastifyReply) => {
    addVary(reply, 'Accept')
    if (!wantsPage(request)) throw new Fault('route_not_found')
    return sendConsole(request, reply, built)
  }
  for (const section of sections) {
    app.get(`/${section}`, hidden, send)
    app.get(`/${section}/*`, hidden, send)
  }
  app.get<{ Params: { name: string } }>('/assets/:name', hidden, async (request, reply) => {
    const file = built.files.get(request.params.name)
    if (!file) throw new Fault('route_not_found')
    return sendPublic(request, reply, file)
  })
}
