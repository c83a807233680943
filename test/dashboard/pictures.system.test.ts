// Pictures of the console for docs/: BERTH_PICTURES=docs/pictures npm run test:system -- test/dashboard/pictures
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { startDeliveries } from '../../src/engines/delivery/deliveries.ts'
import { quotaNames, quotas, quotaVariable } from '../../src/schemas/quotas.ts'
import { createLink } from '../../src/services/people/links.ts'
import { answers, startReceiver } from '../engines/delivery/receiver.ts'
import { until } from '../helpers/until.ts'
import { button, describeConsole, settled, show } from './browser.ts'
import { furnish } from './furnished.ts'

const directory = process.env.BERTH_PICTURES

/** As on a platform that sets none: other tests have plenty. */
const limits = Object.fromEntries(quotaNames.map((name) => [quotaVariable(name), String(quotas[name].max)]))

/** As high as what it shows, up to a page. */
async function take(page: Page, name: string): Promise<void> {
  const height = await page.evaluate<number>(
    `Math.max(...[...document.querySelectorAll('main, dialog')].map((it) => it.getBoundingClientRect().bottom))`,
  )
  await page.setViewportSize({ width: 1280, height: Math.min(Math.max(Math.ceil(height), 480), 1200) })
  await page.screenshot({ path: join(directory!, `${name}.png`), animations: 'disabled' })
  await page.setViewportSize({ width: 1280, height: 720 })
}

test.skipIf(directory !== undefined)('pictures are made on request', () => {})

if (directory)
  describeConsole(
    'pictures',
    { ...limits, WEBHOOK_ALLOW_PRIVATE: 'true', SMTP_URL: 'smtp://localhost:1' },
    async (console) => {
      const { api } = console
      const world = await furnish(api)
      const owner = await console.signIn({ operator: true, email: 'ada@example.com' })
      await owner.page.setViewportSize({ width: 1280, height: 720 })
      await api.db.user.update({
        where: { email: 'ada@example.com' },
        data: { name: 'Ada', emailProvedAt: new Date() },
      })

      const screens: Record<string, string> = {
        overview: '/',
        branches: '/projects/docs/branches',
        traffic: '/projects/docs/traffic',
        hook: '/projects/docs/hook',
        settings: '/projects/docs/settings',
        zones: '/dns',
        events: '/events',
        webhooks: '/webhooks',
        tokens: '/tokens',
        token: `/tokens/${world.token}`,
        tickets: '/tickets',
        ticket: `/tickets/${world.ticket}`,
        members: '/members',
        account: '/account',
        me: '/me',
        'operator-tickets': '/operator/tickets',
        'operator-accounts': '/operator/accounts',
        'operator-account': `/operator/accounts/${world.other}`,
        'operator-nodes': '/operator/nodes',
        'operator-jobs': '/operator/jobs',
        'operator-takedowns': '/operator/takedowns',
      }

      test.each(Object.entries(screens))('%s', async (name, path) => {
        await api.db.node.updateMany({ data: { heartbeatAt: new Date() } })
        await show(owner.page, console.url + path)
        await owner.page.locator('nav .state.ready').waitFor()
        await take(owner.page, name)
        expect(owner.complaints()).toEqual([])
      })

      test('a webhook, a new token, and finding things', async () => {
        const { page } = owner
        const receiver = await startReceiver(answers(503, {}, 'restarting'))
        const worker = startDeliveries({ ...api.deps, registry: undefined })
        try {
          const made = await api.call('POST', '/webhooks', { body: { url: receiver.url, events: ['deployment.*'] } })
          const { id } = (await api.call('POST', `/webhooks/${made.body.id}/ping`)).body
          await until(async () => (await api.db.deliveryAttempt.count({ where: { deliveryId: id } })) === 1)
          receiver.behave(answers(204))
          await api.call('POST', `/webhooks/${made.body.id}/deliveries/${id}/redeliver`)
          await until(async () => (await api.db.delivery.count({ where: { state: 'DELIVERED' } })) > 0)
          await show(page, `${console.url}/webhooks/${made.body.id}?delivery=${id}`)
          await take(page, 'webhook')
        } finally {
          await worker.stop()
          await receiver.close()
        }
        await show(page, `${console.url}/tokens`)
        await button(page, 'New token').first().click()
        await page.getByLabel('Name', { exact: true }).fill('ci')
        await settled(page)
        await take(page, 'new-token')
        await show(page, `${console.url}/`)
        await page.keyboard.press('Control+k')
        await page.getByRole('combobox', { name: 'Find anything' }).fill('doc')
        await page.getByRole('option', { name: /Project docs/ }).waitFor()
        await take(page, 'search')
      })

      test('the way in', async () => {
        const { page } = await console.visitor()
        await page.setViewportSize({ width: 1280, height: 720 })
        await show(page, `${console.url}/sign-in`)
        await take(page, 'sign-in')
        const { accountId } = await api.newAccount('quay')
        await show(page, `${console.url}/setup#${await createLink(api.db, { accountId })}`)
        await page.getByLabel('Your name').fill('Grace')
        await page.getByLabel('Your email').fill('grace@example.com')
        await take(page, 'setup')
      })
    },
  )
