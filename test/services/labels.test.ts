// Labels of hosts: never one of the platform's, never one that was another's.
import { readFile } from 'node:fs/promises'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ownNames } from '../../src/platform/http/own-names.ts'
import { deploymentLabel, readYielded } from '../../src/services/projects/labels.ts'
import { wellKnownLabels } from '../../src/services/projects/well-known-labels.ts'
import { startApi, type TestApi } from '../helpers/api.ts'
import { createDatabase } from '../helpers/database.ts'

const domain = 'apps.example.org'
let api: TestApi
beforeAll(async () => {
  api = await startApi({
    DEPLOYMENT_DOMAIN: domain,
    BASE_URL: `https://desk.${domain}`,
    NAMESERVERS: `alpha.${domain},b.beta.${domain}`,
  })
})
afterAll(() => api.stop())

const labelOf = (url: string) => new URL(url).hostname.replace(`.${domain}`, '')

async function make(name: string, token = api.token): Promise<string> {
  const { status, text, body } = await api.call('POST', '/projects', { token, body: { name, repo: 'acme/site' } })
  expect(status, text).toBe(201)
  return labelOf(body.productionUrl)
}

const remove = async (name: string, token = api.token) =>
  expect((await api.call('DELETE', `/projects/${name}`, { token })).status).toBe(204)

async function newToken(): Promise<string> {
  return (await api.newAccount()).token
}

describe('a name of the platform', () => {
  test('is never the label of a project: the API, the nameservers, and the names above them', async () => {
    for (const name of ['desk', 'alpha', 'beta']) expect(await make(name)).toMatch(new RegExp(`^${name}-[0-9a-z]{4}$`))
    // Below `beta` a label cannot be; beside it one can.
    expect(await make('b')).toBe('b')
  })

  test.each(['login', 'auth', 'billing', 'wpad', 'mta-sts', 'autodiscover', 'ns3', 'console', 'postmaster'])(
    'is not %s either, by which people and programs would know it',
    async (name) => {
      expect(await make(name)).toMatch(new RegExp(`^${name}-[0-9a-z]{4}$`))
    },
  )

  test('is on a list of at least 150, each of which a project can be called', () => {
    expect(wellKnownLabels.size).toBeGreaterThanOrEqual(150)
    for (const label of wellKnownLabels) expect(label).toMatch(/^[a-z0-9](-?[a-z0-9]){0,39}$/)
  })

  test('is never drawn for a deployment', () => {
    const drawn: string[] = []
    const isOwnLabel = (label: string) => drawn.push(label) < 3
    expect(deploymentLabel({ ...api.deps.urls, isOwnLabel }, 'shop')).toBe(drawn[2])
    expect(new Set(drawn).size).toBe(3)
  })

  test.each([
    `desk.${domain}`,
    `DESK.Apps.Example.ORG.`,
    `any.desk.${domain}`,
    `*.desk.${domain}`,
    `*.${domain}`,
    domain,
    'example.org',
    `ｄesk.${domain}`,
    `desk。${domain}`,
  ])('cannot be attached as the domain %s', async (name) => {
    await make('attaching').catch(() => {})
    const refused = await api.call('POST', '/domains', { body: { project: 'attaching', name } })
    expect(refused).toMatchObject({ status: 422, body: { errors: [{ pointer: '#/name', code: 'platform_name' }] } })
  })

  test('that a change of the configuration gave to the platform is told with its project', async () => {
    await api.newProject('lobby')
    const { body } = await api.call('POST', '/deployments', { body: { project: 'lobby' } })
    const preview = new URL(body.url).hostname
    const { hosts } = ownNames({ ...api.config, baseUrl: `https://a.lobby.${domain}`, nameservers: [preview] })
    const { id: projectId } = (await api.call('GET', '/projects/lobby')).body
    expect(await readYielded(api.db, domain, hosts)).toEqual([
      { host: `lobby.${domain}`, projectId },
      { host: preview, projectId },
    ])
    expect(await readYielded(api.db, domain, ownNames(api.config).hosts)).toEqual([])
  })
})

describe('a production label', () => {
  test('is held for its account when the project is deleted, and given back to it', async () => {
    const [mine, other] = [await newToken(), await newToken()]
    expect(await make('venue', mine)).toBe('venue')
    await remove('venue', mine)
    expect(await make('venue', other)).toMatch(/^venue-[0-9a-z]{4}$/)
    expect(await make('venue', mine)).toBe('venue')
  })

  test('with a suffix is given back too', async () => {
    const [mine, other] = [await newToken(), await newToken()]
    await make('hall', mine)
    const label = await make('hall', other)
    await remove('hall', other)
    expect(await make('hall', other)).toBe(label)
    // Not while another project of the account has it.
    await remove('hall', other)
    expect(await make(label, other)).toBe(label)
    const next = await make('hall', other)
    expect(next).toMatch(/^hall-[0-9a-z]{4}$/)
    expect(next).not.toBe(label)
  })

  test('stays held when its account is gone', async () => {
    const gone = await api.newAccount()
    await make('estate', gone.token)
    await api.db.account.delete({ where: { id: gone.accountId } })
    expect(await make('estate')).toMatch(/^estate-[0-9a-z]{4}$/)
  })

  test('goes to one of many accounts that ask at once', async () => {
    const tokens = await Promise.all(Array.from({ length: 8 }, newToken))
    const labels = await Promise.all(tokens.map((token) => make('rush', token)))
    expect(labels.filter((label) => label === 'rush')).toHaveLength(1)
    expect(new Set(labels).size).toBe(8)
  })

  test('does not slip to another account while its project is deleted', async () => {
    const [mine, other] = [await newToken(), await newToken()]
    for (const name of ['slip-1', 'slip-2', 'slip-3']) {
      await make(name, mine)
      const [, label] = await Promise.all([remove(name, mine), make(name, other)])
      expect(label).not.toBe(name)
    }
  })

  test('is asked for twice at once by one account: one project', async () => {
    const token = await newToken()
    const body = { name: 'twice', repo: 'acme/site' }
    const answers = await Promise.all([1, 2, 3].map(() => api.call('POST', '/projects', { token, body })))
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409])
  })

  test('is not taken by the refused attempt to make a project that exists', async () => {
    const [mine, other] = [await newToken(), await newToken()]
    await make('firm', mine)
    await make('firm', other)
    const labels = await api.db.label.count({ where: { projectName: 'firm' } })
    expect((await api.call('POST', '/projects', { token: other, body: { name: 'firm', repo: 'a/b' } })).status).toBe(
      409,
    )
    expect(await api.db.label.count({ where: { projectName: 'firm' } })).toBe(labels)
  })

  test('has a suffix once an account holds a hundred without projects; others still get the name', async () => {
    const { accountId, token } = await api.newAccount()
    await api.db.label.createMany({
      data: Array.from({ length: 100 }, (_, index) => ({ name: `idle-${index}`, accountId, projectName: `i${index}` })),
    })
    expect(await make('modest', token)).toMatch(/^modest-[0-9a-z]{4}$/)
    expect(await make('idle-7', token)).toMatch(/^idle-7-[0-9a-z]{4}$/)
    expect(await make('i7', token)).toBe('idle-7')
    expect(await make('modest')).toBe('modest')
  })

  test('has at most 63 octets, and so has that of a deployment', async () => {
    const name = `${'a-'.repeat(39)}a`
    const project = await api.newProject(name)
    expect(labelOf(project.productionUrl)).toMatch(/^[a-z0-9-]{50,63}$/)
    const { body } = await api.call('POST', '/deployments', { body: { project: project.id } })
    expect(labelOf(body.url)).toMatch(/^a(-a)*-[0-9a-z]{9}$/)
    expect(labelOf(body.url).length).toBeLessThanOrEqual(63)
    // 63 octets exactly are a label as they are.
    const longest = `${'ab'.repeat(8)}-${'c-'.repeat(22)}cc`
    expect(longest).toHaveLength(63)
    expect(await make(longest)).toBe(longest)
  })
})

describe('the label of a deployment', () => {
  async function deployed(project: string): Promise<{ id: string; label: string }> {
    await api.newProject(project)
    const { body } = await api.call('POST', '/deployments', { body: { project } })
    return { id: body.id, label: labelOf(body.url) }
  }

  test('is never given out again: to no project, of whatever account, and to no deployment', async () => {
    const { id, label } = await deployed('brief')
    const row = await api.db.deployment.findUniqueOrThrow({ where: { id } })
    await api.call('POST', `/deployments/${id}/cancel`)
    expect((await api.call('DELETE', `/deployments/${id}`)).status).toBe(204)
    expect(await make(label)).not.toBe(label)
    expect(await make(label, await newToken())).not.toBe(label)
    const again = api.db.deployment.create({ data: { ...row, id: 'dpl_again', steps: [], detected: {}, warnings: [] } })
    await expect(again).rejects.toThrow(/label_pkey|Unique constraint/)
  })

  test('is not given out when its project is gone', async () => {
    const { label } = await deployed('brief-2')
    await remove('brief-2')
    expect(await make(label)).not.toBe(label)
  })
})

test('a row that takes a label of another account is refused by the database itself', async () => {
  const [mine, other] = [await api.newAccount(), await api.newAccount()]
  await make('fort', mine.token)
  const row = await api.db.project.findFirstOrThrow({ where: { label: 'fort' } })
  await remove('fort', mine.token)
  const stolen = { ...row, id: 'prj_stolen', accountId: other.accountId }
  await expect(api.db.project.create({ data: stolen })).rejects.toThrow(/label_pkey|Unique constraint/)
  await api.db.project.create({ data: { ...row, id: 'prj_back' } })
})

test('the upgrade keeps every label, and holds those of what was deleted before', async () => {
  const database = await createDatabase()
  const client = new pg.Client({ connectionString: database.url })
  await client.connect()
  await client.query(`
    DROP TRIGGER project_label ON project; DROP TRIGGER deployment_label ON deployment;
    DROP FUNCTION project_label; DROP FUNCTION deployment_label; DROP TABLE label;
    INSERT INTO account (id, name, created_at) VALUES ('acc_1', 'one', now()), ('acc_2', 'two', now());
    INSERT INTO project (id, account_id, name, framework, repo, region, label, production_branch, spa_fallback,
      clean_urls, auto_deploy, created_at, updated_at)
    VALUES ('prj_1', 'acc_1', 'shop', 'static', 'a/b', 'r', 'shop', 'main', false, true, true, now(), now()),
      ('prj_2', 'acc_2', 'shop', 'static', 'a/b', 'r', 'shop-2222', 'main', false, true, true, now(), now()),
      ('prj_3', 'acc_2', 'login', 'static', 'a/b', 'r', 'login', 'main', false, true, true, now(), now());
    INSERT INTO deployment (id, account_id, project_id, state, ref, commit, production, label, region, source, created_at)
    VALUES ('dpl_1', 'acc_1', 'prj_1', 'READY', 'main', '', true, 'shop-000000001', 'r', 'api', now());
    INSERT INTO event (id, account_id, type, actor, subject, data, created_at) VALUES
      ('evt_1', 'acc_2', 'project.created', 't', 'prj_0', '{"name":"shop","productionUrl":"http://shop.x:80"}', now()),
      ('evt_2', 'acc_1', 'project.created', 't', 'prj_8', '{"name":"old","productionUrl":"https://old.x"}', now()),
      ('evt_3', 'acc_2', 'project.created', 't', 'prj_9', '{"name":"old","productionUrl":"https://old.x"}', now()),
      ('evt_4', 'acc_1', 'project.created', 't', 'prj_7', '{}', now()),
      ('evt_5', 'acc_1', 'deployment.created', 't', 'dpl_0', '{"url":"https://shop-000000000.x"}', now());`)
  const file = 'prisma/migrations/20261116020000_labels/migration.sql'
  await client.query(await readFile(file, 'utf8'))
  const { rows } = await client.query('SELECT name, account_id, project_name FROM label ORDER BY name')
  expect(rows.map((row) => Object.values(row))).toEqual([
    ['login', 'acc_2', 'login'],
    ['old', 'acc_2', 'old'],
    ['shop', 'acc_1', 'shop'],
    ['shop-000000000', 'acc_1', null],
    ['shop-000000001', 'acc_1', null],
    ['shop-2222', 'acc_2', 'shop'],
  ])
  await client.end()
  await database.drop()
})
