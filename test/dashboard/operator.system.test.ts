// The operator's part: accounts and their limits, takedowns, nodes, and jobs that were given up.
import { expect, test } from 'vitest'
import { newId } from '../../src/platform/ids.ts'
import { button, describeConsole, show } from './browser.ts'
import { hostile as markup } from './screens.ts'

describeConsole('the console', {}, async (console) => {
  const owner = await console.signIn({ operator: true, email: 'ada@example.com' })
  const at = (path: string) => show(owner.page, console.url + path)

  test('suspends an account, changes its limits, and takes a host down, each with its curl', async () => {
    const { page } = owner
    const { api } = console
    const { accountId, token } = await api.newAccount('harbour')
    await api.newProject('pier', { token })
    await at(`/operator/accounts/${accountId}`)
    await button(page, 'Suspend').click()
    await page.getByLabel('Reason, shown to the owner').fill(markup)
    await button(page, 'curl').last().click()
    expect(await page.locator('dialog .curl pre').textContent()).toContain('"suspended":true')
    await button(page, 'Suspend the account').click()
    await page.locator('.top .state.bad', { hasText: 'Suspended' }).waitFor()
    await page.getByText(markup).waitFor()
    expect((await api.call('GET', '/projects', { token })).status).toBe(403)
    await page.locator('.top').getByRole('button', { name: 'curl' }).click()
    await page.getByText('# Resume').waitFor()
    await button(page, 'Resume').click()
    await page.locator('.top .state.ready', { hasText: 'Active' }).waitFor()
    expect((await api.call('GET', '/projects', { token })).status).toBe(200)

    await button(page, 'Change limits').click()
    await page.getByRole('dialog').getByLabel('Projects', { exact: true }).fill('1')
    await button(page, 'Save the limits').click()
    await page.getByText('Set for this account: Projects 1').waitFor()
    const more = await api.call('POST', '/projects', { token, body: { name: 'quay', repo: 'test/quay' } })
    expect(more.body.code).toBe('quota_exceeded')

    await at('/operator/takedowns')
    await button(page, 'New takedown').click()
    await page.getByLabel('Host or project ID').fill('login-bank.example.com')
    await page.getByLabel('Reason, shown to the owner').fill('Phishing')
    await button(page, 'Take it down').click()
    await page.getByRole('dialog').getByRole('alert').waitFor()
    await page
      .getByLabel('Host or project ID')
      .fill((await api.db.project.findFirstOrThrow({ where: { accountId } })).id)
    await button(page, 'Take it down').click()
    await page.locator('tr', { hasText: 'harbour' }).getByText('Active').waitFor()
    await page.getByRole('button', { name: /^End the takedown of/ }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'End the takedown' }).click()
    await page.locator('tr', { hasText: 'harbour' }).getByText('Ended').waitFor()
  })

  test('drains a node, and runs or discards jobs that were given up', async () => {
    const { page } = owner
    const { db } = console.api
    const load = { cpu: 0.1, memoryBytes: 100_000_000, work: { jobs: 1 } }
    await db.node.create({ data: { id: newId('nod'), name: 'web-1', roles: ['worker'], version: '1', load } })
    await at('/operator/nodes')
    const row = page.locator('tr', { hasText: 'web-1' })
    await row.getByRole('button').click()
    await page.getByRole('dialog').getByRole('button', { name: 'Drain', exact: true }).click()
    await row.locator('.state.busy', { hasText: 'Draining' }).waitFor()
    await row.getByRole('button').click()
    await page.getByRole('dialog').getByRole('button', { name: 'Resume' }).click()
    await row.locator('.state.ready', { hasText: 'Active' }).waitFor()

    const failed = { kind: 'verify', payload: {}, attempts: 5, lastError: markup, failedAt: new Date() }
    await db.job.createMany({ data: ['first', 'second'].map((key) => ({ ...failed, key })) })
    await at('/operator/jobs')
    const job = (key: string) => page.locator('tr', { hasText: key })
    await job('first')
      .getByRole('button', { name: /^Retry/ })
      .click()
    await button(page, 'curl').last().click()
    expect(await page.locator('dialog .curl pre').textContent()).toMatch(/-X POST .*\/operator\/jobs\/\d+\/retry/)
    await page.getByRole('dialog').getByRole('button', { name: 'Retry' }).click()
    await job('first').waitFor({ state: 'detached' })
    await job('second')
      .getByRole('button', { name: /^Discard/ })
      .click()
    await button(page, 'Discard the job').click()
    await page.getByText('No failed jobs').waitFor()
    expect(await db.job.findMany({ where: { kind: 'verify' } })).toMatchObject([{ key: 'first', failedAt: null }])
    await db.job.deleteMany({ where: { kind: 'verify' } })
  })
})
