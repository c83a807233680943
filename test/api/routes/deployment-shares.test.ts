import { afterAll, beforeAll, expect, test } from 'vitest'
import { finishDeployment } from '../../../src/services/deployments/states.ts'
import { sharedApi, type TestApi } from '../../helpers/api.ts'
import { createRepository } from '../../helpers/repository.ts'

let api: TestApi
beforeAll(async () => {
  api = await sharedApi()
  await createRepository(`${api.config.dataDir}/repos`, 'acme/site')
  await api.call('POST', '/projects', { body: { name: 'site', framework: 'static', repo: 'acme/site' } })
})
afterAll(() => api.stop())

const settings = (settings: object) => api.call('PATCH', '/projects/site', { body: { settings } })

test('a password is set with the protection, is never shown, and is kept as a slow hash', async () => {
  const without = await settings({ previewProtection: 'password' })
  expect(without).toMatchObject({ status: 422, body: { errors: [{ pointer: '#/settings/previewPassword' }] } })
  expect((await settings({ previewPassword: 'short' })).status).toBe(422)
  const { status, body } = await settings({ previewProtection: 'password', previewPassword: 'open sesame' })
  expect(status).toBe(200)
  expect(body.settings.previewProtection).toBe('password')
  expect(JSON.stringify(body)).not.toMatch(/sesame|scrypt|argon/)
  const row = await api.db.project.findFirstOrThrow({ where: { name: 'site' } })
  expect(row).toMatchObject({ previewVersion: 1, previewPasswordHash: expect.stringMatching(/^\$(scrypt|argon2id)\$/) })
  const events = await api.db.event.findMany({ where: { subject: row.id } })
  expect(JSON.stringify(events.map(({ data }) => data))).not.toMatch(/sesame|scrypt|argon/)
  // What does not concern it leaves visits as they are.
  await settings({ spaFallback: true, previewProtection: 'password' })
  expect((await api.db.project.findFirstOrThrow({ where: { name: 'site' } })).previewVersion).toBe(1)
  const made = await api.call('POST', '/projects', {
    body: { name: 'made', repo: 'acme/made', settings: { previewProtection: 'password' } },
  })
  expect(made.status).toBe(422)
})

test('a link is made for a READY deployment of a protected project, by its own account', async () => {
  const { id, url } = (await api.call('POST', '/deployments', { body: { project: 'site' } })).body
  const share = (body: object = {}, token?: string) =>
    api.call('POST', `/deployments/${id}/share`, { body, ...(token && { token }) })
  expect(await share()).toMatchObject({ status: 409, body: { code: 'deployment_not_ready' } })
  await finishDeployment(api.db, api.deps.urls, id, { to: 'READY', by: 'system' })
  const { status, body } = await share({ expiresIn: 3600 })
  expect(status).toBe(200)
  expect(body.url).toMatch(new RegExp(`^${url}/\\?__berth_share=${id}\\.\\d+\\.[\\w-]{43}$`))
  expect(Date.parse(body.expiresAt) - Date.now()).toBeGreaterThan(3_590_000)
  for (const expiresIn of [0, 59, 2_592_001, 1.5, '60', null]) expect((await share({ expiresIn })).status).toBe(422)
  const { token } = await api.newAccount()
  expect((await share({}, token)).status).toBe(404)
  await settings({ previewProtection: 'none' })
  expect(await share()).toMatchObject({ status: 409, body: { code: 'preview_not_protected' } })
})
