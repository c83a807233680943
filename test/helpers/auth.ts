// A browser for /auth: keeps cookies, and sends the origin headers of a browser.
import type { LightMyRequestResponse } from 'fastify'
import type { App } from '../../src/api/app.ts'
import { createLink } from '../../src/services/people/links.ts'
import { createUser } from '../../src/services/people/users.ts'
import type { TestApi } from './api.ts'

export type AuthAnswer = {
  status: number
  headers: Record<string, string | undefined>
  // biome-ignore lint/suspicious/noExplicitAny: tests look at what came, whatever its shape.
  body: any
}

let clients = 0

/** Each browser has its own IP address by default, because limits are per address. */
export class Browser {
  readonly cookies = new Map<string, string>()
  readonly #app: App
  readonly #address: string

  constructor(app: App, address = `127.1.${++clients >> 8}.${clients & 255}`) {
    this.#app = app
    this.#address = address
  }

  /** Another browser with the same cookies. */
  copy(): Browser {
    const other = new Browser(this.#app, this.#address)
    for (const [name, value] of this.cookies) other.cookies.set(name, value)
    return other
  }

  async send(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<AuthAnswer> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const response: LightMyRequestResponse = await this.#app.inject({
      method: method as 'GET',
      url: path,
      remoteAddress: this.#address,
      headers: {
        'sec-fetch-site': 'same-origin',
        ...(cookie && { cookie }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { payload: JSON.stringify(body) }),
    })
    for (const { name, value, maxAge } of response.cookies as { name: string; value: string; maxAge?: number }[]) {
      if (maxAge === 0) this.cookies.delete(name)
      else this.cookies.set(name, value)
    }
    const isJson = /json/.test(String(response.headers['content-type']))
    return {
      status: response.statusCode,
      headers: response.headers as AuthAnswer['headers'],
      body: isJson && response.body ? JSON.parse(response.body) : undefined,
    }
  }

  get = (path: string) => this.send('GET', path)
  post = (path: string, body?: unknown) => this.send('POST', path, body)
}

let people = 0

/** A person signed in by a link, and a way to age the session. */
export async function openPerson({ app, db }: TestApi, given: { email?: string; password?: string } = {}) {
  const user = await createUser(db, { email: given.email ?? `somebody-${++people}@example.com` })
  const browser = new Browser(app)
  const opened = await browser.post('/auth/setup', { code: await createLink(db, { userId: user.id }) })
  if (opened.status !== 200) throw new Error(`not signed in: ${JSON.stringify(opened.body)}`)
  if (given.password) await browser.send('PUT', '/auth/password', { password: given.password })
  const age = () =>
    db.session.updateMany({ where: { userId: user.id }, data: { createdAt: new Date(Date.now() - 601_000) } })
  return { user, browser, age }
}
