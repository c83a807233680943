// What every screen is held to: no violation of axe in either scheme, no report of the policy, no markup that runs.
import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { describeConsole, picture, settled, show, type Visitor, violations } from './browser.ts'
import { screens, seed } from './screens.ts'

describeConsole('every screen', {}, async (console) => {
  const world = await seed(console.api)
  const owner = await console.signIn({ operator: true })

  async function hold(page: Visitor['page'], name: string): Promise<string[]> {
    const found: string[] = []
    for (const scheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme: scheme })
      // Only colours differ between the schemes.
      found.push(...(await violations(page, scheme === 'dark' ? ['color-contrast'] : undefined)))
      await picture(page, `${name}-${scheme}`)
    }
    await page.emulateMedia({ colorScheme: 'light' })
    return found
  }

  test('is among those that are looked at', async () => {
    const routes = await readFile('dashboard/src/routes.ts', 'utf8')
    const paths = screens(world).map(({ path }) => path)
    const missing = [...routes.matchAll(/path: '([^']+)', title: '[^']+', load/g)]
      .map(([, path]) => path!)
      .filter((path) => path !== '/projects')
      .filter((path) => {
        const pattern = path.replace(/\/:\w+\?/g, '(/[^/]+)?').replace(/:\w+/g, '[^/]+')
        return !paths.some((one) => new RegExp(`^${pattern}$`).test(one))
      })
    expect(missing).toEqual([])
  })

  test('has no violation, no complaint and no hostile markup, wide and narrow', async () => {
    const { page, complaints } = owner
    complaints()
    const wrong: Record<string, string[]> = {}
    for (const { path, heading, narrow = true } of screens(world)) {
      await show(page, console.url + path)
      const found = complaints()
      const name =
        path
          .replace(/^\//, '')
          .replace(/\/\w{3}_\w+/, '/one')
          .replaceAll('/', '-') || 'overview'
      const title = (await page.locator('main h1').first().textContent()) ?? ''
      if (!(typeof heading === 'string' ? heading === title : heading.test(title))) found.push(`heading: ${title}`)
      if ((await page.locator('main img, main script').count()) > 0) found.push('markup of a customer became elements')
      found.push(...(await hold(page, name)))
      if (narrow) {
        await page.setViewportSize({ width: 360, height: 740 })
        const over = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')
        if (over > 0) found.push(`sticks out by ${over} px at 360`)
        await picture(page, `${name}-360`)
        await page.setViewportSize({ width: 1280, height: 800 })
      }
      if (found.length > 0) wrong[path] = found
    }
    expect(wrong).toEqual({})
  }, 900_000)

  test('has no violation before somebody is signed in', async () => {
    const { page, complaints, context } = await console.visitor()
    const wrong: Record<string, string[]> = {}
    for (const path of ['/sign-in', '/setup', '/setup#not-a-code']) {
      await page.goto('about:blank')
      await page.goto(console.url + path)
      await settled(page)
      const found = await hold(page, path.replace(/\W/g, ''))
      const unexpected = complaints().filter((text) => !/status of (401|404|410|422)/.test(text))
      if (found.length + unexpected.length > 0) wrong[path] = [...found, ...unexpected]
    }
    expect(wrong).toEqual({})
    await context.close()
  })
})
