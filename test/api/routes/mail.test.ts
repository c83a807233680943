import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { mailKindNames } from '../../../src/services/mail/kinds.ts'
import { unsubscribeUrl } from '../../../src/services/mail/unsubscribe.ts'
import { sharedApi, type TestApi } from '../../helpers/api.ts'
import { newPerson } from '../../helpers/people.ts'

let api: TestApi
beforeAll(async () => {
  api = await sharedApi()
})
afterAll(() => api.stop())

const ask = (method: 'GET' | 'POST', url: string, payload?: string, type = 'application/x-www-form-urlencoded') =>
  api.app.inject({ method, url, ...(payload !== undefined && { payload, headers: { 'content-type': type } }) })
const linkOf = (userId: string, kind: (typeof mailKindNames)[number]) =>
  unsubscribeUrl(api.config.baseUrl, api.deps.vault, userId, kind).slice(api.config.baseUrl.length)
const mutedOf = async (id: string) => (await api.db.user.findUniqueOrThrow({ where: { id } })).mutedMails

describe('the link of a mail', () => {
  test('shows a button, and mutes its kind when it is posted, once and without a sign-in', async () => {
    const { user, browser } = await newPerson(api)
    const link = linkOf(user.id, 'ticket-reply')
    const page = await ask('GET', link)
    expect(page).toMatchObject({ statusCode: 200, headers: { 'content-type': 'text/html; charset=utf-8' } })
    expect(page.headers['content-security-policy']).toMatch(/^default-src 'none'; style-src 'sha256-/)
    expect(page.body).toContain('<form method="post"><button')
    expect(await mutedOf(user.id)).toEqual([])
    const form = '--x\r\nContent-Disposition: form-data; name="List-Unsubscribe"\r\n\r\nOne-Click\r\n--x--\r\n'
    expect((await ask('POST', link, 'List-Unsubscribe=One-Click')).statusCode).toBe(200)
    expect((await ask('POST', link, form, 'multipart/form-data; boundary=x')).statusCode).toBe(200)
    expect((await ask('POST', link)).statusCode).toBe(200)
    expect(await mutedOf(user.id)).toEqual(['ticket-reply'])
    expect((await browser.ask('GET', '/me')).body.user.mutedMails).toEqual(['ticket-reply'])
    const changed = await browser.ask('PATCH', '/me', { mutedMails: [] })
    expect(changed).toMatchObject({ status: 200, body: { user: { mutedMails: [] } } })
  })

  test('is good for its person and kind alone, and says the same of every other', async () => {
    const [{ user }, { user: other }] = [await newPerson(api), await newPerson(api)]
    const link = new URL(linkOf(user.id, 'ticket-reply'), api.config.baseUrl)
    const change = (changes: Record<string, string>) => {
      const bad = new URL(link)
      for (const [name, value] of Object.entries(changes)) bad.searchParams.set(name, value)
      return bad.pathname + bad.search
    }
    const bad = [
      change({ user: other.id }),
      change({ kind: 'new-sign-in' }),
      change({ kind: 'constructor' }),
      change({ signature: '' }),
      change({ signature: 'A'.repeat(43) }),
      change({ user: 'usr_nobody' }),
      '/mail/unsubscribe',
    ]
    const bodies = new Set<string>()
    for (const path of bad) {
      for (const method of ['GET', 'POST'] as const) {
        const answer = await ask(method, path)
        expect(answer.statusCode, path).toBe(404)
        bodies.add(answer.body)
      }
    }
    expect(bodies.size).toBe(1)
    expect(await mutedOf(user.id)).toEqual([])
    expect(await mutedOf(other.id)).toEqual([])
    const huge = await ask('POST', link.pathname + link.search, 'x'.repeat(10_000))
    expect(huge.statusCode).toBe(413)
    // What else the address has is of no effect: the page leads nowhere but to the console.
    const page = await ask('GET', `${link.pathname}${link.search}&next=https://evil.example&user2=<script>`)
    expect(page.body).not.toMatch(/evil|<script/)
  })
})

test('the kinds are listed by name, and only these can be muted', async () => {
  const { browser } = await newPerson(api)
  const { body } = await browser.ask('GET', '/mails')
  expect(body.mails.map(({ name }: { name: string }) => name)).toEqual(mailKindNames)
  expect(body.mails).toContainEqual({ name: 'new-sign-in', title: 'Somebody signed in as you', security: true })
  const muted = [...mailKindNames]
  expect((await browser.ask('PATCH', '/me', { mutedMails: muted })).body.user.mutedMails).toEqual(muted)
  expect((await browser.ask('PATCH', '/me', { mutedMails: ['all'] })).status).toBe(422)
})
