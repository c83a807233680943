// A console in Chromium: built as it is, served by the real API, and held to its policy on every page.
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import axe from 'axe-core'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { afterAll, describe, test } from 'vitest'
import { buildParts } from '../../build/parts.ts'
import type { User } from '../../src/generated/client.ts'
import { createLink } from '../../src/services/people/links.ts'
import { addMember } from '../../src/services/people/memberships.ts'
import type { Role } from '../../src/services/people/roles.ts'
import { createUser } from '../../src/services/people/users.ts'
import { startApi, type TestApi } from '../helpers/api.ts'
import { freePort } from '../helpers/ports.ts'
import { until } from '../helpers/until.ts'

/** Null where it is not installed: the tests are skipped there. */
export const chromiumPath = findChromium()

function findChromium(): string | null {
  try {
    return execFileSync('which', ['chromium'], { encoding: 'utf8', stdio: 'pipe' }).trim()
  } catch {
    if (process.env.BERTH_REQUIRE_PEERS === '1') throw new Error('chromium is not installed')
    return null
  }
}

const optionalRoutes = [
  { url: '/api/projects/:project/traffic', asked: /\/projects\/[^/]+\/traffic(\?|$)/ },
  { url: '/api/dns/:domain/traffic', asked: /\/dns\/[^/]+\/traffic(\?|$)/ },
  { url: '/api/account/usage', asked: /\/api\/account\/usage(\?|$)/ },
  { url: '/auth/mails', asked: /\/auth\/mails$/ },
]

type NewPerson = { role?: Role; operator?: boolean; accountId?: string; email?: string }

export type TestConsole = {
  api: TestApi
  url: string
  browser: Browser
  /** A member of the account, and a link that signs them in. */
  newPerson(person?: NewPerson): Promise<{ user: User; link: string }>
  /** A browser of its own that is signed in by a link. */
  signIn(person?: NewPerson): Promise<Visitor>
  /** A browser in which nobody is signed in. */
  visitor(): Promise<Visitor>
  stop(): Promise<void>
}

export type Visitor = {
  context: BrowserContext
  page: Page
  /** What the browser complained about so far: reports of the policy, errors, answers that failed. Empties it. */
  complaints(): string[]
}

/** Some need to know where the console will be. */
type Environment = Record<string, string> | ((url: string) => Promise<Record<string, string>>)

/** The tests of a file, with one console for all of them; skipped where there is no browser. */
export function describeConsole(
  name: string,
  environment: Environment,
  tests: (console: TestConsole) => Promise<void> | void,
): void {
  if (chromiumPath === null) describe.skip(name, () => test('needs chromium', () => {}))
  else
    describe(name, async () => {
      const console = await startConsole(environment)
      afterAll(() => console.stop())
      await tests(console)
    })
}

export async function startConsole(environment: Environment = {}): Promise<TestConsole> {
  const { console: directory } = await buildParts(['console'])
  const port = await freePort()
  const url = `http://localhost:${port}`
  const given = typeof environment === 'function' ? await environment(url) : environment
  const api = await startApi({ BASE_URL: url, ...given }, { consoleDirectory: directory })
  await api.app.listen({ host: '127.0.0.1', port })
  const browser = await chromium.launch({
    executablePath: chromiumPath!,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-background-networking',
      '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1',
    ],
  })
  let people = 0
  // What this server does not have, and the console does without.
  const absent = optionalRoutes.filter(({ url }) => !api.app.hasRoute({ method: 'GET', url })).map(({ asked }) => asked)

  async function visitor(): Promise<Visitor> {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce' })
    const page = await context.newPage()
    let said: string[] = []
    await page.exposeFunction('complain', (text: string) => said.push(text))
    // Text and not functions, because this program has no types of pages.
    await page.addInitScript(`addEventListener('securitypolicyviolation', (event) =>
      complain('policy: ' + event.violatedDirective + ' ' + event.blockedURI + ' ' + event.sample))`)
    page.on('pageerror', (error) => said.push(`error: ${error.message}`))
    page.on('dialog', (dialog) => {
      said.push(`dialog: ${dialog.message()}`)
      void dialog.dismiss()
    })
    page.on('console', (message) => {
      if (absent.some((asked) => asked.test(message.location().url))) return
      if (message.type() === 'error') said.push(`console: ${message.text()} ${message.location().url}`)
    })
    return {
      context,
      page,
      complaints() {
        const all = said
        said = []
        return all
      },
    }
  }

  async function newPerson({ role = 'owner', operator = false, accountId = api.accountId, email }: NewPerson = {}) {
    const user = await createUser(api.db, { email: email ?? `person-${++people}@example.com`, operator })
    await api.db.$transaction((db) => addMember(db, { accountId, user, role, projectIds: [] }))
    return { user, link: `${url}/setup#${await createLink(api.db, { userId: user.id })}` }
  }

  return {
    api,
    url,
    browser,
    visitor,
    newPerson,
    async signIn(person) {
      const { link } = await newPerson(person)
      const one = await visitor()
      await one.page.goto(link)
      await one.page.getByRole('button', { name: 'Sign in' }).click()
      await one.page.getByRole('button', { name: 'Later' }).click()
      await one.page.getByRole('heading', { level: 1, name: 'Projects' }).waitFor()
      return one
    },
    async stop() {
      await browser.close()
      await api.stop()
    },
  }
}

export const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })

/** A device that makes passkeys, and always says yes. */
export async function addDevice({ context, page }: Visitor): Promise<void> {
  const devtools = await context.newCDPSession(page)
  await devtools.send('WebAuthn.enable')
  await devtools.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  })
}

/** Goes to a screen as a reload does, and waits until it has read what it shows. */
export async function show(page: Page, url: string): Promise<void> {
  await page.goto(url)
  await settled(page)
}

/** A screen is there when it has its heading and nothing of it is still being read. */
export async function settled(page: Page): Promise<void> {
  await page.locator('main h1, main h2').first().waitFor()
  await until(async () => (await page.locator('[aria-busy=true]').count()) === 0)
}

// Where pictures go: `BERTH_SCREENS=docs/screens npm run test:system -- test/dashboard`.
const pictures = process.env.BERTH_SCREENS

export async function picture(page: Page, name: string): Promise<void> {
  if (pictures) await page.screenshot({ path: join(pictures, `${name}.png`) })
}

type Violation = { id: string; nodes: { html: string; failureSummary: string }[] }

/** What axe finds on the page as it is, in a line each. */
export async function violations(page: Page, rules?: string[]): Promise<string[]> {
  // Evaluated by the debugger, to which the policy of the page does not apply.
  await page.evaluate(`globalThis.axe ?? (() => { ${axe.source} })()`)
  const options = JSON.stringify(rules ? { runOnly: rules } : {})
  const found = await page.evaluate<Violation[]>(`axe.run(document, ${options}).then(({ violations }) => violations)`)
  return found.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`))
}
