// The console as people use it: the way in, the keyboard, what happens without a session or a network.
import { afterAll, expect, test } from 'vitest'
import { createLink } from '../../src/services/people/links.ts'
import { addMember } from '../../src/services/people/memberships.ts'
import { startProvider, type TestProvider } from '../helpers/identity-provider.ts'
import { until } from '../helpers/until.ts'
import { addDevice, describeConsole, picture, settled, show, type Visitor, violations } from './browser.ts'
import { hostile } from './screens.ts'

let provider: TestProvider
afterAll(() => provider?.stop())

/** With an identity provider. */
async function environment(url: string): Promise<Record<string, string>> {
  provider = await startProvider(`${url}/auth/oidc/callback`)
  const { issuer, client } = provider
  return { OIDC_ISSUER: issuer, OIDC_CLIENT_ID: client.id, OIDC_CLIENT_SECRET: client.secret, OIDC_NAME: 'Example' }
}

describeConsole('the console', environment, async (console) => {
  let owner: Visitor
  await console.api.newProject('docs')

  test('lets the first owner in by the set-up link, once, and leads back to where they wanted to go', async () => {
    owner = await console.visitor()
    const { page } = owner
    await page.goto(`${console.url}/tokens?x=1`)
    await page.waitForURL(`${console.url}/sign-in?next=%2Ftokens%3Fx%3D1`)
    await settled(page)
    expect(await page.title()).toBe('Sign in · Berth')

    const code = await createLink(console.api.db, { accountId: console.api.accountId })
    await page.goto(`${console.url}/setup#${code}`)
    await page.getByLabel('Your name').fill(hostile)
    await page.getByLabel('Your email').fill('not an address')
    await page.getByRole('button', { name: 'Set up' }).click()
    await page.getByText('must be an address such as ada@example.com').waitFor()
    await picture(page, 'setup-first-owner')
    expect(await page.locator(':focus').getAttribute('name')).toBe('email')
    await page.getByLabel('Your email').fill('ada@example.com')
    await page.getByRole('button', { name: 'Set up' }).click()
    await page.getByRole('heading', { name: "You're signed in" }).waitFor()
    await picture(page, 'you-are-in')
    expect(page.url()).toBe(`${console.url}/setup`)
    await page.getByRole('button', { name: 'Later' }).click()
    await page.getByRole('link', { name: 'docs', exact: true }).waitFor()
    await page.locator('nav .state.ready', { hasText: 'Live' }).waitFor()
    await page.getByText('ada@example.com').waitFor()

    const second = await console.visitor()
    await second.page.goto(`${console.url}/setup#${code}`)
    await second.page.getByRole('heading', { name: 'This link is no longer valid' }).waitFor()
    await second.context.close()
  })

  test('keeps the token in memory alone', async () => {
    const { page } = owner
    const stored = await page.evaluate<string>(
      `JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])`,
    )
    expect(stored).not.toContain('brt_')
    expect(stored).toContain('""')
  })

  test('shows what others do as it happens, says when it is offline, and catches up', async () => {
    const { page, context } = owner
    await show(page, `${console.url}/`)
    await page.locator('nav .state.ready', { hasText: 'Live' }).waitFor()
    await console.api.newProject('while-live')
    await page.getByRole('link', { name: 'while-live', exact: true }).waitFor()
    await context.setOffline(true)
    await page.locator('nav .state.bad', { hasText: 'Offline' }).waitFor()
    await picture(page, 'offline')
    await console.api.newProject('while-offline')
    await context.setOffline(false)
    await page.getByRole('link', { name: 'while-offline', exact: true }).waitFor()
    await page.locator('nav .state.ready', { hasText: 'Live' }).waitFor()
  })

  test('makes a project by keyboard alone, and shows the errors of the API at their fields', async () => {
    const { page } = owner
    await show(page, `${console.url}/`)
    await page.getByRole('button', { name: 'New project' }).first().press('Enter')
    const dialog = page.getByRole('dialog', { name: 'New project' })
    await dialog.waitFor()
    await page.keyboard.type('Not A Name')
    await page.keyboard.press('Enter')
    await dialog.locator('.wrong').first().waitFor()
    expect(await dialog.getByLabel('Name', { exact: true }).getAttribute('aria-invalid')).toBe('true')
    await page.keyboard.press('Control+a')
    await page.keyboard.type('by-keyboard')
    await page.keyboard.press('Tab')
    await page.keyboard.type('acme/by-keyboard')
    await dialog.getByRole('button', { name: 'curl' }).press('Enter')
    await picture(page, 'new-project')
    expect(await violations(page)).toEqual([])
    const curl = await dialog.locator('.curl pre').textContent()
    expect(curl).toBe(
      `curl ${console.url}/api/projects -H "Authorization: Bearer $BERTH_TOKEN" ` +
        `--json '{"name":"by-keyboard","repo":"acme/by-keyboard","framework":"auto"}'`,
    )
    await dialog.getByRole('button', { name: 'Create project' }).press('Enter')
    await page.waitForURL(`${console.url}/projects/by-keyboard`)
    await settled(page)
    expect(await page.evaluate('document.activeElement.tagName')).toBe('H1')
    await page.goBack()
    await page.waitForURL(`${console.url}/`)
    await page.getByRole('link', { name: 'by-keyboard', exact: true }).waitFor()
  })

  test('finds with Ctrl K, by keyboard alone', async () => {
    const { page } = owner
    await show(page, `${console.url}/`)
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: 'Find anything' }).waitFor()
    await page.keyboard.type('doc')
    await page.getByRole('option', { name: /Project docs/ }).waitFor()
    await picture(page, 'search')
    expect(await violations(page)).toEqual([])
    await page.keyboard.press('Enter')
    await page.waitForURL(`${console.url}/projects/docs`)
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('combobox').waitFor({ state: 'detached' })
  })

  test('asks for a new token when the old one is refused, and for a sign-in when the session has ended', async () => {
    const { page } = owner
    await show(page, `${console.url}/`)
    // The token of the page is revoked: it gets another one, and nobody notices.
    await console.api.db.token.updateMany({ where: { sessionId: { not: null } }, data: { revokedAt: new Date() } })
    await page.getByRole('link', { name: 'Domains' }).first().click()
    await page.getByRole('heading', { level: 1, name: 'Domains' }).waitFor()
    await page.getByRole('link', { name: 'Projects' }).first().click()
    await page.getByRole('link', { name: 'docs', exact: true }).waitFor()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.waitForURL(`${console.url}/sign-in`)
    await page.goto(`${console.url}/`)
    await page.waitForURL(`${console.url}/sign-in`)
  })

  test('signs in by a passkey that was made at the set-up', async () => {
    const visitor = await console.visitor()
    const { page, context, complaints } = visitor
    await addDevice(visitor)
    await page.goto((await console.newPerson({ email: 'passkey@example.com' })).link)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('button', { name: 'Create a passkey' }).click()
    await page.getByRole('heading', { level: 1, name: 'Projects' }).waitFor()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.waitForURL(`${console.url}/sign-in`)
    await page.goto(`${console.url}/account`)
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
    await page.waitForURL(`${console.url}/account`)
    await page.getByText('passkey@example.com').waitFor()
    // Without a session the page is told so by 401, once for each load.
    expect(complaints().filter((text) => !/status of 401/.test(text))).toEqual([])
    await context.close()
  })

  test('signs in by the identity provider, and joins an account when the invitation is accepted', async () => {
    const { page, context, complaints } = await console.visitor()
    const other = await console.api.newAccount('harbour')
    const invite = (token: string, role: string) =>
      console.api.call('POST', '/members/invitations', { token, body: { email: 'grace@example.com', role } })
    await invite(console.api.token, 'viewer')
    await invite(other.token, 'developer')
    provider.signInAs('grace', { email: 'grace@example.com', email_verified: true, name: 'Grace' })
    await page.goto(`${console.url}/tickets`)
    await page.getByRole('link', { name: 'Sign in with Example' }).click()
    // Whoever is new is in no account, and is told of both invitations.
    await page.getByText('You are not a member of any account.').waitFor()
    const notice = (account: string) => page.locator('.notice', { hasText: account })
    await notice('harbour').getByRole('button', { name: 'Accept' }).click()
    await page.locator('nav .foot', { hasText: /grace@example\.com.*developer/ }).waitFor()
    await page.locator('.notice').first().waitFor()
    expect(await page.locator('.notice').count()).toBe(1)
    expect(await violations(page)).toEqual([])
    await page.getByRole('button', { name: 'Decline' }).click()
    await page.locator('.notice').waitFor({ state: 'detached' })
    expect(complaints().filter((text) => !/status of (401|404)/.test(text))).toEqual([])
    const { db } = console.api
    expect(await db.membership.findMany({ where: { user: { email: 'grace@example.com' } } })).toMatchObject([
      { accountId: other.accountId, role: 'developer' },
    ])
    expect(await db.invitation.count({ where: { email: 'grace@example.com', acceptedAt: null } })).toBe(0)
    await context.close()
  })

  test('sends nobody to another site after a sign-in', async () => {
    const { context } = await console.visitor()
    await context.route('**/auth/password', (route) => route.fulfill({ json: {} }))
    const places = ['//evil.example', '/\t/evil.example', '/.//evil.example', '/\\evil.example', 'https://evil.example']
    const go = async (next: string) => {
      const page = await context.newPage()
      await page.goto(`${console.url}/sign-in?next=${encodeURIComponent(next)}`)
      await settled(page)
      const left = page.waitForRequest((request) => request.isNavigationRequest())
      await page.getByRole('button', { name: 'Sign in with a password' }).click()
      expect(new URL((await left).url()).origin).toBe(console.url)
    }
    await Promise.all([...places, 'javascript:alert(1)'].map(go))
    // The pages are closed with the browser: Chromium does not always close one that is just being left.
  })

  test('keeps nothing of a person who has left, when somebody else signs in in another tab', async () => {
    const { page, context } = await console.signIn({ email: 'first@example.com' })
    await page.getByText('first@example.com').waitFor()
    const { accountId } = await console.api.newAccount()
    const second = await console.newPerson({ email: 'second@example.com', role: 'viewer', accountId })
    const other = await context.newPage()
    await other.goto(second.link)
    await other.getByRole('button', { name: 'Sign in' }).click()
    await other.getByRole('button', { name: 'Later' }).waitFor()
    // The session of the first has ended with it: the next call finds another person, and the page begins anew.
    await page.getByRole('link', { name: 'Domains' }).first().click()
    await page.getByText('second@example.com').waitFor()
    // It may have begun anew before the click, because its stream ended too.
    await page.getByRole('link', { name: 'Projects' }).first().click()
    await page.getByText('No projects yet').waitFor()
    await context.close()
  })

  test('shows the account of whoever is in several, and switches', async () => {
    const other = await console.api.newAccount('other-account')
    const one = await console.signIn({ email: 'both@example.com' })
    const { db } = console.api
    const user = await db.user.findUniqueOrThrow({ where: { email: 'both@example.com' } })
    await db.$transaction((tx) => addMember(tx, { accountId: other.accountId, user, role: 'viewer', projectIds: [] }))
    await show(one.page, `${console.url}/`)
    await one.page.getByRole('combobox', { name: 'Account' }).selectOption('other-account')
    await one.page.locator('nav .foot', { hasText: 'viewer' }).waitFor()
    await one.page.getByText('No projects yet').waitFor()
    // A viewer is not offered what would be refused.
    await until(async () => (await one.page.getByRole('button', { name: 'New project' }).count()) === 0)
    await one.context.close()
  })
})
