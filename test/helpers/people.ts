// People in tests: browsers with a cookie that call /auth, and members of accounts.

import { createLink } from '../../src/services/people/links.ts'
import { addMember } from '../../src/services/people/memberships.ts'
import type { Role } from '../../src/services/people/roles.ts'
import { createUser } from '../../src/services/people/users.ts'
import type { Answer, TestApi } from './api.ts'

export type Browser = {
  /** The secret of the session; null while signed out. */
  cookie: string | null
  /** Sends a request like a page of the console; `headers` replace those of a browser. */
  ask(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>
  /** The secret of a console token. */
  token(account?: string): Promise<string>
}

export function openBrowser({ app }: Pick<TestApi, 'app'>): Browser {
  const browser: Browser = {
    cookie: null,
    async ask(method, path, body, headers = { 'sec-fetch-site': 'same-origin' }) {
      const response = await app.inject({
        method: method as 'GET',
        url: `/auth${path}`,
        headers: {
          'user-agent': 'Test browser',
          ...(browser.cookie !== null && { cookie: `other=1; __Host-berth=${browser.cookie}` }),
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body !== undefined && { payload: JSON.stringify(body) }),
      })
      const set = [response.headers['set-cookie'] ?? []].flat().find((one) => one.startsWith('__Host-berth='))
      if (set) browser.cookie = /^__Host-berth=([^;]*)/.exec(set)![1] || null
      const text = response.body
      const isJson = String(response.headers['content-type'] ?? '').includes('json')
      const answered = response.headers as Answer['headers']
      return { status: response.statusCode, headers: answered, body: isJson ? JSON.parse(text) : undefined, text }
    },
    async token(account) {
      const made = await browser.ask('POST', '/token', account === undefined ? {} : { account })
      if (made.status !== 200) throw new Error(`no token: ${made.text}`)
      return made.body.secret
    },
  }
  return browser
}

let people = 0

export type NewPerson = { role?: Role; accountId?: string; projectIds?: string[]; operator?: boolean; email?: string }

/** A member of the account, signed in by a link. */
export async function newPerson(api: TestApi, options: NewPerson = {}) {
  const { role = 'owner', accountId = api.accountId, projectIds = [], operator = false } = options
  const email = options.email ?? `person-${++people}@example.com`
  const { user, member } = await api.db.$transaction(async (db) => {
    const user = await createUser(db, { email, operator })
    return { user, member: await addMember(db, { accountId, user, role, projectIds }) }
  })
  const browser = openBrowser(api)
  const opened = await browser.ask('POST', '/setup', { code: await createLink(api.db, { userId: user.id }) })
  if (opened.status !== 200) throw new Error(`not signed in: ${opened.text}`)
  return { user, member, browser }
}
