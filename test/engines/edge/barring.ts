// Suspends and takes down, and looks at hosts by every way in which the edge can be asked.
import type { ClientHttp2Session } from 'node:http2'
import { expect } from 'vitest'
import type { Actor } from '../../../src/services/identity/actor.ts'
import { changeAccount } from '../../../src/services/suspension/index.ts'
import { createTakedown, endTakedown } from '../../../src/services/takedowns/takedowns.ts'
import { until } from '../../helpers/until.ts'
import { ask, type HttpsWorld } from './https-world.ts'
import type { World } from './world.ts'

export const operator: Actor = { accountId: 'acc_desk', tokenId: 'system', scopes: ['operator'], projectIds: null }

type Operated = Pick<World, 'db' | 'urls'>

export const suspend = ({ db, urls }: Operated, accountId: string, suspended: boolean) =>
  changeAccount(db, operator, accountId, { urls, input: { suspended }, precondition: () => {} })

export const takeDown = ({ db, urls }: Operated, what: { host: string } | { project: string }) =>
  createTakedown(db, urls, operator, { ...what, reason: 'reported as phishing' })

export const putBack = ({ db }: Operated, id: string) => endTakedown(db, operator, id, () => {})

export type Look = { way: string; status: number; headers: Record<string, unknown>; text: string }

/** One host over HTTP, by the plain path and by Node's, with every kind of request; `tag` is an ETag of its page. */
export async function looksOver(world: World, host: string, tag = '"x"'): Promise<Look[]> {
  const asks: [way: string, headers: Record<string, string>, method?: string][] = [
    ['plain', {}],
    ['conditional', { 'if-none-match': tag }],
    ['any', { 'if-none-match': '*' }],
    ['range', { range: 'bytes=0-1' }],
    ['HEAD', {}, 'HEAD'],
    ['POST', {}, 'POST'],
    ['OPTIONS', {}, 'OPTIONS'],
  ]
  const looks: Look[] = []
  for (const [way, headers, method] of asks) {
    looks.push({ way: `http ${way}`, ...(await world.get(host, '/', headers, method)) })
  }
  for (const path of ['/no/such/page', '/?a=b', '/%41', '/%zz']) {
    looks.push({ way: `http ${path}`, ...(await world.get(host, path)) })
  }
  return looks
}

/** The same over HTTPS, by HTTP/1.1 and HTTP/2. */
export async function looksOverTls(world: HttpsWorld, host: string, session: ClientHttp2Session): Promise<Look[]> {
  const looks: Look[] = []
  for (const method of ['GET', 'HEAD', 'POST']) {
    looks.push({ way: `https ${method}`, ...(await world.fetch(host, '/', { method })) })
    const answer = await ask(session, { ':method': method, ':path': '/', ':authority': host })
    looks.push({ way: `http2 ${method}`, ...answer })
  }
  return looks
}

/** Every one of them is the neutral page: no caching, no tag, no word about whose it is. */
export function expectNeutral(looks: Look[], words: string[] = []): void {
  for (const { way, status, headers, text } of looks) {
    expect([way, status]).toEqual([way, 403])
    expect([way, headers['cache-control']]).toEqual([way, 'no-store'])
    expect([way, headers['content-type']]).toEqual([way, 'text/html; charset=utf-8'])
    for (const name of ['etag', 'location', 'strict-transport-security', 'content-encoding']) {
      expect([way, name, headers[name]]).toEqual([way, name, undefined])
    }
    if (!way.includes('HEAD')) expect(text).toContain('Not available')
    for (const word of words) expect(text).not.toContain(word)
  }
}

export const answersWith = (world: World, host: string, status: number) =>
  until(async () => (await world.get(host, '/')).status === status)
