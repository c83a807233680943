// Tokens, webhooks, tickets and members, as people use them.
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { startDeliveries } from '../../src/engines/delivery/deliveries.ts'
import { answers, startReceiver } from '../engines/delivery/receiver.ts'
import { button, describeConsole, settled, show, violations } from './browser.ts'
import { hostile as markup } from './screens.ts'

const hostile = [markup, '\u202egnp.exe مرحبا بالعالم', `${markup} ${'w'.repeat(9_900)}`]

/** By how many pixels the page is wider than the screen. */
const sticksOut = (page: Page) => page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')

describeConsole('the console', { WEBHOOK_ALLOW_PRIVATE: 'true' }, async (console) => {
  await console.api.newProject('docs')
  const owner = await console.signIn({ operator: true, email: 'ada@example.com' })

  const at = (path: string) => show(owner.page, console.url + path)

  test('makes a token that works, shows its secret once, and revokes it with what it made', async () => {
    const { page } = owner
    await at('/tokens')
    await button(page, 'New token').first().click()
    const dialog = page.getByRole('dialog', { name: 'New token' })
    await dialog.getByLabel('Name', { exact: true }).fill('ci')
    await dialog.getByLabel('Tokens: write').check()
    await dialog.getByLabel('docs').check()
    await button(page, 'curl').last().click()
    expect(await dialog.locator('.curl pre').textContent()).toContain('"deployments:write"')
    await button(page, 'Create the token').click()
    const secret = await dialog.locator('.secret code').textContent()
    expect(await dialog.locator('.curl pre').textContent()).toContain(`Bearer ${secret}`)
    const current = await console.api.call('GET', '/tokens/current', { token: secret })
    expect(current.body).toMatchObject({ name: 'ci', projects: ['docs'] })
    expect(current.body.scopes.toSorted()).toEqual(['deployments:write', 'projects:read', 'tokens:write'])
    expect(current.body.createdBy).toMatch(/^usr_/)
    await console.api.call('POST', '/tokens', { token: secret, body: { name: 'child-of-ci' } })

    await button(page, 'I saved it').click()
    // Also the maker of the other one is a link to it.
    await page.getByRole('link', { name: 'ci', exact: true }).first().click()
    await settled(page)
    expect(await page.content()).not.toContain(secret)
    await button(page, 'Revoke').click()
    await page.getByRole('dialog').getByText('child-of-ci').waitFor()
    await button(page, 'Revoke the token').click()
    await page.waitForURL(`${console.url}/tokens`)
    expect((await console.api.call('GET', '/tokens/current', { token: secret })).status).toBe(401)
  })

  test('shows every attempt of a webhook with its answer, and sends again', async () => {
    const { page } = owner
    const receiver = await startReceiver(answers(503, {}, 'restarting <b>now</b>'))
    const worker = startDeliveries({ ...console.api.deps, registry: undefined })
    try {
      await at('/webhooks')
      await button(page, 'New webhook').first().click()
      await page.getByLabel('URL', { exact: true }).fill(receiver.url)
      await button(page, 'Create the webhook').click()
      expect(await page.locator('.secret code').textContent()).toMatch(/^whsec_/)
      await button(page, 'I saved it').click()
      await page.waitForURL(/webhooks\/whk_/)
      await button(page, 'Send a test').click()
      await page.locator('.attempts .state.bad', { hasText: '503' }).waitFor()
      await page.getByText('restarting <b>now</b>').waitFor()
      receiver.behave(answers(204))
      await button(page, 'Send again').click()
      await page.locator('.attempts .state.ready', { hasText: '204' }).waitFor()
      await button(page, 'Turn off').click()
      await page.locator('.top .state.off').waitFor()
      await button(page, 'Turn on').waitFor()
      expect(await violations(page)).toEqual([])
    } finally {
      await worker.stop()
      await receiver.close()
    }
  })

  test('opens a ticket, which an operator answers in the queue while the customer looks', async () => {
    const { page } = owner
    const customer = await console.signIn({ accountId: (await console.api.newAccount('acme')).accountId })
    await show(customer.page, `${console.url}/tickets`)
    await button(customer.page, 'New ticket').first().click()
    await customer.page.getByLabel('Subject', { exact: true }).fill('No lockfile')
    await customer.page.getByLabel('What happened, and what did you expect?').fill('It is there.\nReally.')
    await button(customer.page, 'Open the ticket').click()
    await customer.page.getByRole('heading', { name: 'No lockfile' }).waitFor()
    await customer.page.locator('nav .state.ready').waitFor()

    await at('/operator/tickets')
    await page.getByRole('link', { name: 'No lockfile' }).click()
    await page.locator('.top').getByRole('button', { name: 'curl' }).click()
    expect(await page.locator('.curl pre').first().textContent()).toMatch(/# Start\ncurl -X PATCH .*"IN_PROGRESS"/)
    await page.getByLabel('Priority').selectOption('high')
    await page.locator('.panel', { hasText: 'Priority' }).getByRole('button', { name: 'curl' }).click()
    await page.locator('.curl', { hasText: '"priority":"high"' }).waitFor()
    await page.getByLabel('Reply to the customer').fill('Which branch?')
    await button(page, 'Send').click()
    await customer.page.locator('.thread .support', { hasText: 'Which branch?' }).waitFor()
    await customer.page.locator('.top .state', { hasText: 'Waiting for you' }).waitFor()
    await button(customer.page, 'Close the ticket').click()
    await customer.page.getByRole('dialog').getByRole('button', { name: 'Close the ticket' }).click()
    await customer.page.getByText('This ticket is closed').waitFor()
    await show(customer.page, `${console.url}/operator/accounts`)
    expect(await customer.page.getByText('Only operators of this installation').count()).toBe(1)
    await customer.context.close()
  })

  test('invites a person as viewer, who sees everything and can change nothing', async () => {
    const { page } = owner
    await at('/members')
    await button(page, 'Invite a person').first().click()
    await page.getByRole('dialog').getByLabel('Email', { exact: true }).fill('grace@example.com')
    await page.getByRole('dialog').getByLabel('Role').selectOption('viewer')
    await button(page, 'Create the invitation').click()
    const link = await page.locator('.secret code').textContent()
    await button(page, 'Done').click()
    await page.getByRole('cell', { name: 'grace@example.com', exact: true }).waitFor()

    const grace = await console.visitor()
    await grace.page.goto(link!)
    await grace.page.getByLabel('Your name').fill('Grace')
    await button(grace.page, 'Accept the invitation').click()
    await button(grace.page, 'Later').click()
    await grace.page.locator('nav .foot', { hasText: /grace@example\.com.*viewer/ }).waitFor()
    await page.getByRole('cell', { name: /^Grace/ }).waitFor()
    for (const path of ['/tokens', '/webhooks', '/tickets', '/members']) {
      await show(grace.page, console.url + path)
      const names = await grace.page.locator('main button').allTextContents()
      expect(
        names.filter((name) => !/^(curl|Load more|Copy)$/.test(name)),
        path,
      ).toEqual([])
    }
    const refused = await grace.page.evaluate(async () => {
      const sent = { method: 'POST', headers: { 'content-type': 'application/json' } }
      const made = await fetch('/auth/token', { ...sent, body: '{}' })
      const { secret } = (await made.json()) as { secret: string }
      const headers = { ...sent.headers, authorization: `Bearer ${secret}` }
      const paths = ['/tokens', '/projects', '/members/invitations', '/webhooks']
      return Promise.all(
        paths.map(async (path) => (await fetch(`/api${path}`, { ...sent, headers, body: '{}' })).status),
      )
    })
    expect(refused).toEqual([403, 403, 403, 403])

    await button(page, 'Remove Grace').click()
    await page.getByRole('dialog').getByText('They have no tokens.').waitFor()
    await button(page, 'Remove the person').click()
    await page.getByRole('cell', { name: /^Grace/ }).waitFor({ state: 'detached' })
    await grace.context.close()
  })

  test('shows what anybody writes as text, and nothing of it sticks out', async () => {
    const { page, complaints } = owner
    const { api } = console
    const ids: string[] = []
    for (const text of hostile) {
      const made = async (path: string, body: object) => (await api.call('POST', path, { body })).body.id
      const subject = text.slice(0, 200)
      ids.push(`/tickets/${await made('/tickets', { subject, message: text })}`)
      ids.push(`/tokens/${await made('/tokens', { name: text.slice(0, 100), scopes: ['dns:read'] })}`)
      ids.push(`/operator/${ids.at(-2)!.slice(1)}`)
    }
    const filters = new URLSearchParams({ type: markup, subject: markup, since: markup })
    await page.setViewportSize({ width: 360, height: 740 })
    complaints()
    const wrong: string[] = []
    for (const path of ['/tokens', '/tickets', '/operator/tickets', `/events?${filters}`, '/events', ...ids]) {
      await at(path)
      const over = await sticksOut(page)
      if (over > 0) wrong.push(`${path} sticks out by ${over} px`)
      if ((await page.locator('main img, main script').count()) > 0) wrong.push(`${path} has elements of a customer`)
      wrong.push(...complaints().filter((text) => !/status of 422/.test(text)))
    }
    await at('/events')
    await page.locator('.events summary', { hasText: 'ticket.created' }).first().click()
    await page.locator('.json', { hasText: 'wwwwww' }).first().waitFor()
    if ((await sticksOut(page)) > 0) wrong.push('an open event')
    expect(wrong).toEqual([])
    expect(await violations(page)).toEqual([])
    await page.setViewportSize({ width: 1280, height: 800 })
  })
})
