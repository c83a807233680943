// POST /deployments/{id}/redeploy: the same source once more, without asking for anything that is stored.
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { finishDeployment } from '../../../src/services/deployments/states.ts'
import { markContentsLost } from '../../../src/services/uploads/statements.ts'
import { sharedApi, type TestApi } from '../../helpers/api.ts'
import { random, sha256, uploadsOf } from '../../helpers/uploads.ts'

let api: TestApi
let uploads: ReturnType<typeof uploadsOf>

beforeAll(async () => {
  api = await sharedApi()
  uploads = uploadsOf(api)
  await api.newProject('site')
})
afterAll(() => api.stop())

const redeploy = (id: string, body?: object) => api.call('POST', `/deployments/${id}/redeploy`, body ? { body } : {})
const filesOf = (deploymentId: string) =>
  api.db.sourceFile.findMany({
    where: { deploymentId },
    select: { path: true, sha256: true, size: true, mode: true, present: true },
    orderBy: { path: 'asc' },
  })

test('a commit is built again, even if its branch has moved on, for the same target', async () => {
  const { body: first } = await api.call('POST', '/deployments', { body: { project: 'site', production: true } })
  await finishDeployment(api.db, api.deps.urls, first.id, { to: 'READY', by: 'system' })
  // A hash that the repository no longer has: nobody asks it.
  const commit = 'a'.repeat(40)
  await api.db.deployment.update({ where: { id: first.id }, data: { commit } })
  const again = await redeploy(first.id)
  expect(again.status, again.text).toBe(201)
  expect(again.headers.location).toBe(`/api/deployments/${again.body.id}`)
  expect(again.body).toMatchObject({
    state: 'BUILDING',
    ref: first.ref,
    commitSha: commit,
    production: true,
    source: 'api',
  })
  expect(again.body.id).not.toBe(first.id)
  expect(await uploads.jobOf(again.body.id)).toBe(1)
  expect((await redeploy(first.id, { production: false })).body.production).toBe(false)
})

test('uploaded files are built again without being sent again', async () => {
  const [page, other] = [random(), random()]
  const { body: first } = await uploads.deploy({ 'index.html': page, 'a/b.txt': other })
  expect(await redeploy(first.id)).toMatchObject({ status: 409, body: { code: 'source_incomplete' } })
  for (const content of [page, other]) await uploads.put(content)
  const source = { where: { deploymentId: first.id } }
  await api.db.deploymentSource.update({ ...source, data: { prebuilt: true } })
  const again = await redeploy(first.id)
  expect(again.status, again.text).toBe(201)
  expect(again.body).toMatchObject({ source: 'upload', production: false, uploads: { missing: [], expiresAt: null } })
  expect(await filesOf(again.body.id)).toEqual(await filesOf(first.id))
  expect(await api.db.deploymentSource.findUnique({ where: { deploymentId: again.body.id } })).toMatchObject({
    prebuilt: true,
    missing: 0,
    newBytes: 0n,
  })
  expect(await uploads.jobOf(again.body.id)).toBe(1)
})

test('thousands of uploaded files are built again whole', async () => {
  const content = random()
  const files = Object.fromEntries(Array.from({ length: 2_500 }, (_, n) => [`d${n % 7}/${n}.txt`, content]))
  const { body: first } = await uploads.deploy(files)
  await uploads.put(content)
  const again = await redeploy(first.id)
  expect(again.status, again.text).toBe(201)
  expect(await filesOf(again.body.id)).toEqual(await filesOf(first.id))
})

test('an account redeploys uploaded files one after another, and what waits is bounded', async () => {
  const content = random()
  const { body: first } = await uploads.deploy({ 'index.html': content })
  await uploads.put(content)
  const turn = Promise.withResolvers<void>()
  const recheck = vi.spyOn(api.app, 'recheck').mockImplementationOnce(() => turn.promise)
  const sent = Array.from({ length: 10 }, () => redeploy(first.id))
  // One has its turn, eight wait.
  expect(await Promise.race(sent)).toMatchObject({ status: 429, body: { code: 'rate_limited' } })
  expect(recheck).toHaveBeenCalledTimes(1)
  turn.resolve()
  const statuses = (await Promise.all(sent)).map(({ status }) => status)
  expect(statuses.sort()).toEqual([...Array(9).fill(201), 429])
  expect(recheck).toHaveBeenCalledTimes(9)
})

test('what cannot be built again is refused, and leaves nothing', async () => {
  const content = random()
  const { body: first } = await uploads.deploy({ 'index.html': content })
  await uploads.put(content)
  await markContentsLost(api.db, { hashes: [sha256(content)] })
  const { body: built } = await api.call('POST', '/deployments', { body: { project: 'site' } })
  const before = await api.db.deployment.count()
  expect(await redeploy(first.id)).toMatchObject({ status: 409, body: { code: 'source_incomplete' } })
  expect((await redeploy(built.id, { production: 'yes' })).body.errors).toMatchObject([{ pointer: '#/production' }])
  const { token } = await api.newAccount()
  expect((await api.call('POST', `/deployments/${built.id}/redeploy`, { token })).status).toBe(404)
  const limited = await api.call('POST', '/tokens', {
    body: { name: 'reader', scopes: ['deployments:read'] },
  })
  const denied = await api.call('POST', `/deployments/${built.id}/redeploy`, { token: limited.body.secret })
  expect(denied).toMatchObject({ status: 403, body: { code: 'insufficient_scope' } })
  await api.db.project.updateMany({ where: { name: 'site' }, data: { repo: '' } })
  expect(await redeploy(built.id)).toMatchObject({ status: 409, body: { code: 'project_without_repository' } })
  expect(await api.db.deployment.count()).toBe(before)
})
