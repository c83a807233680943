// GET /search: what each kind is found by, and that nobody finds what a token may not read.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Answer, sharedApi, type TestApi } from '../../helpers/api.ts'

let api: TestApi
let deployment: Answer['body']
let ticket: Answer['body']
const commit = 'deadbeef0123456789abcdef0123456789abcdef'
beforeAll(async () => {
  api = await sharedApi()
  await api.newProject('shop')
  await api.newProject('shop-two')
  for (const [project, name] of [
    ['shop', 'shop.search.io'],
    ['shop-two', 'www.shop.search.io'],
  ]) {
    await api.call('POST', '/domains', { body: { project, name } })
  }
  deployment = (await api.call('POST', '/deployments', { body: { project: 'shop' } })).body
  await api.db.deployment.update({ where: { id: deployment.id }, data: { commit, ref: 'feature/shop' } })
  ticket = (await api.call('POST', '/tickets', { body: { subject: 'The shop is down', message: 'x' } })).body
})
afterAll(() => api.stop())

type Results = Record<'projects' | 'domains' | 'deployments' | 'tickets', { id: string; name: string }[]>
async function search(q: string, token = api.token) {
  const { status, body, text } = await api.call('GET', `/search?q=${encodeURIComponent(q)}`, { token })
  if (status !== 200) throw new Error(text)
  const { projects, domains, deployments, tickets } = body as Results
  const names = [...projects, ...domains].map(({ name }) => name)
  return [...names, ...[...deployments, ...tickets].map(({ id }) => id)]
}
const newToken = async (body: object) =>
  (await api.call('POST', '/tokens', { body: { name: 'n', ...body } })).body.token as string

describe('a search', () => {
  test('finds every kind by what is known of it', async () => {
    expect(await search('SHOP')).toEqual(['shop', 'shop-two', 'www.shop.search.io', 'shop.search.io', ticket.id])
    expect(await search('feature/shop')).toEqual([deployment.id])
    const host = new URL(deployment.url).host
    for (const q of [deployment.id, deployment.url, host, host.split('.')[0]!, 'DEADBEEF', commit]) {
      expect(await search(q), q).toEqual([deployment.id])
    }
    expect(await search(ticket.id)).toEqual([ticket.id])
    expect(await search(' shop down ')).toEqual([ticket.id])
    const { body: project } = await api.call('GET', '/projects/shop')
    expect(await search(project.id)).toEqual(['shop'])
    for (const nothing of ['nowhere', '%%', '__', '\\\\', "' OR 1=1 --", ':*', 'dpl_', 'tkt_', 'prj_', '..', '😀😀']) {
      expect(await search(nothing), nothing).toEqual([])
    }
  })

  test('shows what the token may read, and names it', async () => {
    const read = async (body: object) => {
      const token = await newToken(body)
      const { body: found } = await api.call('GET', '/search?q=shop', { token })
      return [found.searched, await search('shop', token)]
    }
    expect(await read({ scopes: ['projects:read'] })).toEqual([['projects'], ['shop', 'shop-two']])
    expect(await read({ scopes: ['tickets:write'] })).toEqual([['tickets'], [ticket.id]])
    expect(await read({ scopes: ['events:read'] })).toEqual([[], []])
    expect(await read({ projects: ['shop-two'] })).toEqual([
      ['projects', 'domains', 'deployments'],
      ['shop-two', 'www.shop.search.io'],
    ])
    const narrowed = await newToken({ projects: ['shop-two'] })
    for (const q of [deployment.id, deployment.url, commit, 'feature/shop', ticket.id]) {
      expect(await search(q, narrowed), q).toEqual([])
    }
  })

  test('finds nothing of another account', async () => {
    const { token } = await api.newAccount()
    const { body: project } = await api.call('GET', '/projects/shop')
    for (const q of ['shop', project.id, deployment.id, deployment.url, commit, 'feature/shop', ticket.id]) {
      expect(await search(q, token), q).toEqual([])
    }
  })

  test('is bounded, and refuses what is no text to look for', async () => {
    expect((await api.call('GET', '/search?q=shop&limit=1')).body).toMatchObject({
      projects: [{ name: 'shop' }],
      domains: [{ name: 'www.shop.search.io' }],
    })
    for (const query of ['', 'q=', 'q=a', 'q=%20%20%20', `q=${'a'.repeat(201)}`, 'q=shop&limit=21', 'q=shop&x=1']) {
      expect((await api.call('GET', `/search?${query}`)).status, query).toBe(422)
    }
    expect((await api.call('GET', '/search?q=shop', { token: null })).status).toBe(401)
  })
})
