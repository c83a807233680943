// The console with everything behind it: a project, its first deployment, a domain, its zone, as somebody does it.
import { Resolver } from 'node:dns/promises'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { type GitHost, startGitHost } from '../helpers/git-host.ts'
import { freePort } from '../helpers/ports.ts'
import { startProgram } from '../helpers/program.ts'
import { createRepository } from '../helpers/repository.ts'
import { until } from '../helpers/until.ts'
import { describeConsole, show, violations } from './browser.ts'

const markup = '<img src=x onerror=alert(1)>'
const rightToLeft = '\u202egnp.exe\u2066'
const long = 'W'.repeat(7_000)

let root: string
let host: GitHost
let shared: Record<string, string>
let ports: Record<'PORT' | 'METRICS_PORT' | 'EDGE_HTTP_PORT' | 'EDGE_HTTPS_PORT' | 'DNS', number>

/** A host of repositories, and what the console's server and the rest of the platform share. */
async function environment(): Promise<Record<string, string>> {
  root = await mkdtemp(join(tmpdir(), 'berth-git-'))
  host = await startGitHost(root)
  const build = `mkdir dist && echo '${markup}' > dist/index.html && echo '${markup} ${rightToLeft}' && echo ${long}`
  const files = { 'package.json': JSON.stringify({ name: 'site', private: true, scripts: { build } }) }
  await createRepository(root, 'acme/site', files)
  const names = ['PORT', 'METRICS_PORT', 'EDGE_HTTP_PORT', 'EDGE_HTTPS_PORT', 'DNS'] as const
  ports = Object.fromEntries(
    await Promise.all(names.map(async (name) => [name, await freePort()] as const)),
  ) as typeof ports
  shared = {
    GIT_URL_TEMPLATE: host.template,
    NAMESERVER_LISTEN: `127.0.0.1:${ports.DNS}`,
    EDGE_HTTP_PORT: String(ports.EDGE_HTTP_PORT),
    EDGE_HTTPS_PORT: String(ports.EDGE_HTTPS_PORT),
    // Nobody outside is asked.
    DNS_RESOLVERS: '127.0.0.1:1',
    SECRETS_KEY: Buffer.alloc(32, 7).toString('base64'),
  }
  return shared
}

describeConsole('the console of a whole platform', environment, async (console) => {
  const { api } = console
  const nameserver = shared.NAMESERVER_LISTEN!
  const berth = await startProgram(
    'worker,edge,nameserver',
    { ...shared, DATABASE_URL: api.databaseUrl, DATA_DIR: api.config.dataDir },
    ports,
  )
  afterAll(async () => {
    await berth.stop()
    host.close()
    await rm(root, { recursive: true, force: true })
  })
  await berth.ready()
  const owner = await console.signIn()

  const asked = async (name: string, type: 'A' | 'TXT') => {
    const resolver = new Resolver({ timeout: 1_000, tries: 1 })
    resolver.setServers([nameserver])
    return resolver.resolve(name, type).catch(() => null)
  }

  /** Nothing complained, nothing of a customer became an element, nothing sticks out, and axe finds nothing. */
  async function isSound() {
    const { page, complaints } = owner
    expect(complaints()).toEqual([])
    expect(await page.locator('main img, main script').count()).toBe(0)
    // Every screen is held to it by screens.test.ts; here it is as people leave it.
    expect(await violations(page)).toEqual([])
    await page.setViewportSize({ width: 360, height: 740 })
    expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0)
    await page.setViewportSize({ width: 1280, height: 800 })
  }

  test('makes a project, deploys it, and shows its log as it is written until it is ready', async () => {
    const { page } = owner
    await page.getByRole('button', { name: 'New project' }).first().click()
    await page.getByLabel('Name', { exact: true }).fill('site')
    await page.getByLabel('Repository').fill('acme/site')
    await page.getByRole('button', { name: 'Create project' }).click()
    await page.getByText('No deployments yet').waitFor()
    await page.getByRole('button', { name: 'Deploy', exact: true }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Deploy' }).click()
    await page.waitForURL(/\/deployments\/dpl_/)
    await page.locator('.top .state.ready', { hasText: 'Ready' }).waitFor()
    await page.getByRole('log').getByText('Published 1 file').waitFor()
    await page.getByRole('log').getByText(markup, { exact: false }).first().waitFor()
    await page.getByText('In production').waitFor()
    expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('first')
    await isSound()
    await page.getByRole('searchbox', { name: 'Find in log' }).fill('PUBLISHED')
    await page.getByRole('log').locator('mark').waitFor()
    expect(await page.getByRole('log').locator('li').count()).toBe(1)
    await until(() => page.url().endsWith('?find=PUBLISHED'))
    await page.reload()
    await page.getByRole('log').locator('mark').waitFor()
  })

  test('goes on behind the last line when the stream of a log breaks off', async () => {
    const { page } = owner
    const { deployments } = (await console.api.call('GET', '/deployments')).body
    const { lines } = (await console.api.call('GET', `/deployments/${deployments[0].id}/logs`)).body
    const behind: (string | undefined)[] = []
    await page.route('**/logs', async (route) => {
      behind.push(route.request().headers()['last-event-id'])
      if (behind.length > 1) return route.continue()
      const body = `id: ${lines[0].seq}\ndata: ${JSON.stringify(lines[0])}\n\n`
      await route.fulfill({ contentType: 'text/event-stream', body })
    })
    await show(page, `${console.url}/deployments/${deployments[0].id}`)
    await page.getByRole('log').getByText('Published 1 file').waitFor()
    expect(behind).toEqual([undefined, String(lines[0].seq)])
    expect(await page.getByRole('log').locator('li').count()).toBe(lines.length)
    await page.unroute('**/logs')
  })

  test('deploys the same again, and shows and releases what production is pinned to', async () => {
    const { page } = owner
    const [first] = (await console.api.call('GET', '/deployments')).body.deployments
    await show(page, `${console.url}/deployments/${first.id}`)
    await page.getByRole('button', { name: 'Redeploy' }).click()
    await page.waitForURL((url) => !url.pathname.endsWith(first.id))
    await page.locator('.top .state.ready', { hasText: 'Ready' }).waitFor()
    expect((await api.call('POST', '/projects/site/rollback')).status).toBe(202)
    await show(page, `${console.url}/projects/site`)
    await page.getByRole('link', { name: first.id }).waitFor()
    await isSound()
    await page.getByRole('button', { name: 'Unpin' }).click()
    await page.getByText('Pinned to').waitFor({ state: 'detached' })
    expect((await api.call('GET', '/projects/site')).body.pinned).toBe(null)
  })

  test('says why a deployment failed and what to do, and keeps hostile names harmless', async () => {
    const { page } = owner
    await api.call('PATCH', '/projects/site', { body: { settings: { outputDirectory: 'nowhere' } } })
    const { id } = (await api.call('POST', '/deployments', { body: { project: 'site' } })).body
    await show(page, `${console.url}/deployments/${id}`)
    await page.locator('.top .state.bad', { hasText: 'Error' }).waitFor()
    await page.getByText('output_missing').waitFor()
    await page.getByRole('link', { name: 'Open the settings' }).waitFor()
    await api.db.deployment.update({
      where: { id },
      data: { commitMessage: `${markup} ${rightToLeft} ${'W'.repeat(160)}` },
    })
    await page.reload()
    await page.getByRole('heading', { level: 1, name: markup }).waitFor()
    await isSound()
    await show(page, `${console.url}/projects/site/deployments?state=ERROR`)
    expect(await page.getByRole('row').count()).toBe(2)
    await isSound()
  })

  test('sets a variable for one target, and never shows a secret again', async () => {
    const { page } = owner
    await show(page, `${console.url}/projects/site/variables`)
    const set = async (key: string, value: string, target: string, readable: boolean) => {
      await page.getByRole('button', { name: 'Set a variable' }).first().click()
      const dialog = page.getByRole('dialog')
      await dialog.getByLabel('Name').fill(key)
      await dialog.getByLabel('For', { exact: true }).selectOption(target)
      await dialog.getByLabel('Value').fill(value)
      await dialog.getByLabel('Readable').setChecked(readable)
      await dialog.getByRole('button', { name: 'Set the variable' }).click()
      await dialog.waitFor({ state: 'detached' })
    }
    await set('API_KEY', 'never-shown', 'production', false)
    await set('API_URL', markup + long, 'preview', true)
    await page.getByRole('cell', { name: 'API_KEY', exact: true }).waitFor()
    await page.getByText(markup, { exact: false }).first().waitFor()
    expect(await page.content()).not.toContain('never-shown')
    const { env } = (await console.api.call('GET', '/projects/site/env')).body
    expect(env).toMatchObject([
      { key: 'API_KEY', target: 'production', value: null },
      { key: 'API_URL', target: 'preview', readable: true },
    ])
    await isSound()
    await page.getByRole('combobox', { name: 'Target' }).selectOption('production')
    await page.getByRole('cell', { name: 'API_URL', exact: true }).waitFor({ state: 'detached' })
    expect(page.url()).toContain('target=production')
  })

  test('leads a domain from its name to its certificate, live', async () => {
    const { page } = owner
    await show(page, `${console.url}/domains`)
    await page.getByRole('button', { name: 'Add a domain' }).first().click()
    await page.getByLabel('Name', { exact: true }).fill('not a name')
    await page.getByRole('button', { name: 'Add the domain' }).click()
    await page.locator('dialog .wrong').waitFor()
    await page.getByLabel('Name', { exact: true }).fill('flow.test')
    await page.getByRole('button', { name: 'Add the domain' }).click()
    await page.waitForURL(`${console.url}/domains/flow.test`)
    await page.locator('.top .state.ready', { hasText: 'Active' }).waitFor()
    expect(await page.locator('.line li.done').count()).toBe(4)
    await page.getByText(`Seen at ${nameserver}`).waitFor()
    owner.complaints()
    await isSound()
    // One that cannot be found says what is expected, and when it is looked for again.
    await console.api.call('POST', '/domains', { body: { project: 'site', name: 'elsewhere.com' } })
    await show(page, `${console.url}/domains/elsewhere.com?proof=txt`)
    await page.getByText('We expect this TXT record').waitFor()
    await page
      .getByText(/next check in/)
      .first()
      .waitFor()
    await isSound()
  })

  test('checks a record as one types it, and the nameserver answers what was applied', async () => {
    const { page } = owner
    await show(page, `${console.url}/dns/flow.test`)
    await page.getByRole('button', { name: 'Add a record' }).click()
    await page.getByRole('textbox', { name: 'Name' }).last().fill('www')
    await page.getByRole('textbox', { name: 'Value' }).fill('300.1.2.3')
    await page.locator('.edited .wrong').waitFor()
    expect(await page.getByRole('button', { name: 'Apply' }).isDisabled()).toBe(true)
    owner.complaints()
    await isSound()
    await page.getByRole('textbox', { name: 'Value' }).fill('192.0.2.7')
    await page.getByText('1 change, checked').waitFor()
    await page.getByRole('button', { name: 'Apply' }).click()
    await page.getByRole('cell', { name: '192.0.2.7', exact: true }).waitFor()
    await until(async () => String(await asked('www.flow.test', 'A')) === '192.0.2.7')
    await page.getByRole('region', { name: 'Nameservers' }).getByRole('button', { name: 'Refresh' }).click()
    await page.getByText('Up to date').first().waitFor()
  })

  test('shows what a pasted zone would change, refuses it on another zone, and applies it', async () => {
    const { page } = owner
    await show(page, `${console.url}/dns/flow.test?paste=1`)
    const zone = [
      '$ORIGIN flow.test.',
      '@ 300 IN SOA ns1.old. admin.old. 1 2 3 4 5',
      'www 600 IN A 192.0.2.7',
      `note 300 IN TXT "${markup}"`,
      'api 300 IN A 192.0.2.8',
    ]
    await page.getByRole('textbox', { name: 'Zone file' }).fill('www IN A nonsense')
    await page.getByRole('button', { name: 'Compare' }).click()
    await page.locator('.problem').waitFor()
    await page.getByRole('textbox', { name: 'Zone file' }).fill(zone.join('\n'))
    await page.getByRole('button', { name: 'Compare' }).click()
    await page.getByText('2 new, 1 changed').first().waitFor()
    await page.getByText('The SOA record is managed by the platform.').waitFor()
    await page.getByText('300 → 600').waitFor()
    owner.complaints()
    await isSound()
    await api.call('POST', '/dns/flow.test/records', { body: { type: 'A', name: 'other', value: '192.0.2.9' } })
    await page.getByRole('button', { name: /^Apply/ }).click()
    await page.getByText('The zone has changed.').waitFor()
    expect(await asked('api.flow.test', 'A')).toBeNull()
    await page.getByRole('button', { name: 'Compare' }).click()
    await page.getByText('2 new, 1 changed, 1 deleted').first().waitFor()
    await page.getByRole('button', { name: /^Apply/ }).click()
    await page.getByRole('cell', { name: '192.0.2.8', exact: true }).waitFor()
    await until(async () => String(await asked('api.flow.test', 'A')) === '192.0.2.8')
    expect(await asked('other.flow.test', 'A')).toBeNull()
    expect(await asked('note.flow.test', 'TXT')).toEqual([[markup]])
    const download = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Download' }).click()
    expect((await download).suggestedFilename()).toBe('flow.test.zone')
    owner.complaints()
    await isSound()
  })

  test('offers a viewer nothing that would be refused', async () => {
    const { page, context } = await console.signIn({ role: 'viewer' })
    for (const path of [
      '/projects/site',
      '/projects/site/settings',
      '/projects/site/variables',
      '/domains',
      '/domains/flow.test',
      '/dns/flow.test',
    ]) {
      await show(page, console.url + path)
      const names = /^(Deploy|Delete|Add|Set|Save|Paste|Check now|Edit|Move|Redirect)/
      expect(await page.getByRole('main').getByRole('button', { name: names }).count(), path).toBe(0)
    }
    await show(page, `${console.url}/projects/nothing`)
    await page.getByText('not_found').or(page.getByText('There is no project nothing.')).first().waitFor()
    await context.close()
  })
})
