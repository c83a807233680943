// The host of a branch shows its newest READY deployment, with everything that holds for previews.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { HostTable } from '../../../src/engines/edge/hosts/hosts.ts'
import type { Takeovers } from '../../../src/engines/edge/hosts/takeovers.ts'
import { createPasswordHasher } from '../../../src/platform/secrets/password-hash.ts'
import { createVault } from '../../../src/platform/secrets/secrets.ts'
import { deleteDeployment } from '../../../src/services/deployments/deployments.ts'
import { readEdgeHosts } from '../../../src/services/deployments/hosts.ts'
import { shareDeployment } from '../../../src/services/deployments/shares.ts'
import { finishDeployment } from '../../../src/services/deployments/states.ts'
import { changeProject, createProject, deleteProject } from '../../../src/services/projects/projects.ts'
import { until } from '../../helpers/until.ts'
import { putBack, suspend, takeDown } from './barring.ts'
import { startWorld, type World } from './world.ts'

const vault = createVault(Buffer.alloc(32, 7))
const hasher = createPasswordHasher({ use: { kind: 'scrypt', parameters: { ln: 10, r: 8, p: 1 } } })

let world: World
beforeAll(async () => {
  world = await startWorld({ vault })
})
afterAll(() => world.stop())

const text = async (host: string) => {
  const answer = await world.get(host, '/')
  return answer.status === 200 ? answer.text : String(answer.status)
}
const shows = (host: string, expected: string) => until(async () => (await text(host)) === expected)
const page = (content: string) => ({ 'index.html': content })
const remove = (id: string) => deleteDeployment(world.db, world.urls, world.actor, { id, precondition() {} })

describe('the host of a branch', () => {
  test('follows its newest READY deployment by creation, and goes back when that is deleted', async () => {
    await world.newProject('shop')
    const first = await world.deploy('shop', page('first'), { ready: false, production: true })
    expect(first.branchHost).toBe('shop-git-main.localhost')
    expect(await text(first.branchHost)).toBe('404')
    await world.ready(first.id)
    await shows(first.branchHost, 'first')
    const second = await world.deploy('shop', page('second'), { ready: false })
    const third = await world.deploy('shop', page('third'))
    await shows(first.branchHost, 'third')
    // READY last, but created before the third.
    await world.ready(second.id)
    await shows(second.host, 'second')
    expect(await text(first.branchHost)).toBe('third')
    const failed = await world.deploy('shop', page('failed'), { ready: false })
    await finishDeployment(world.db, world.urls, failed.id, { to: 'CANCELED', by: 'system' })
    await remove(third.id)
    await shows(first.branchHost, 'second')
    await remove(second.id)
    await shows(first.branchHost, 'first')
    // Production serves something of its own.
    expect(await text('shop.localhost')).toBe('first')
  })

  test('is another one for each branch, and goes with its last deployment and its project', async () => {
    await world.newProject('apart')
    const feature = await world.deploy('apart', page('feature'), { ref: 'feature-a' })
    const slash = await world.deploy('apart', page('slash'), { ref: 'feature/a' })
    await shows(feature.branchHost, 'feature')
    await shows(slash.branchHost, 'slash')
    expect(slash.branchHost).not.toBe(feature.branchHost)
    await remove(slash.id)
    await shows(slash.branchHost, '404')
    expect(await text(feature.branchHost)).toBe('feature')
    await deleteProject(world.db, world.urls, world.actor, { key: 'apart', precondition() {} })
    await shows(feature.branchHost, '404')
    // The account gets the host again with a project of the same name.
    await world.newProject('apart')
    const again = await world.deploy('apart', page('again'), { ref: 'feature-a' })
    expect(again.branchHost).toBe(feature.branchHost)
    await shows(again.branchHost, 'again')
  })

  test('asks for what protects previews, also where the branch is that of production', async () => {
    await world.newProject('veiled')
    const { id, host, branchHost } = await world.deploy('veiled', page('the page'), { production: true })
    await shows(branchHost, 'the page')
    const protect = async (settings: object, passwordHash?: string) => {
      const before = world.edge.snapshot!.find(branchHost)!.gate?.version
      const input = { settings } as never
      await changeProject(world.db, world.urls, world.actor, { key: 'veiled', input, passwordHash, precondition() {} })
      await until(() => world.edge.snapshot!.find(branchHost)!.gate?.version !== before)
    }
    await protect({ previewProtection: 'password', previewPassword: 'open sesame' }, await hasher.hash('open sesame'))
    expect((await world.get(branchHost, '/')).status).toBe(401)
    expect(await text('veiled.localhost')).toBe('the page')
    await protect({ previewProtection: 'link' })
    const link = new URL(
      (await shareDeployment(world.db, { urls: world.urls, vault }, world.actor, { id, expiresIn: 600 })).url,
    )
    expect(link.hostname).toBe(host)
    const opened = await world.get(branchHost, `/${link.search}`)
    expect(opened.status).toBe(303)
    const cookie = opened.headers['set-cookie']![0]!.split(';', 1)[0]!
    expect((await world.get(branchHost, '/', { cookie })).text).toBe('the page')
    // A link opens one deployment, and the branch has moved on.
    const next = await world.deploy('veiled', page('the next page'))
    await until(() => world.edge.snapshot!.find(branchHost)!.target?.deploymentId === next.id)
    expect((await world.get(branchHost, '/', { cookie })).status).toBe(401)
    // A branch that is deployed first while previews are protected.
    const other = await world.deploy('veiled', page('other'), { ref: 'other' })
    await until(() => world.edge.snapshot!.find(other.branchHost)?.target)
    expect((await world.get(other.branchHost, '/')).status).toBe(401)
  })

  test('is taken down by its name or with its project, and barred with its account', async () => {
    await world.newProject('bad')
    const { id, host, branchHost } = await world.deploy('bad', page('bad'))
    await shows(branchHost, 'bad')
    const byName = await takeDown(world, { host: branchHost })
    await shows(branchHost, '403')
    expect(await text(host)).toBe('bad')
    await remove(id)
    await world.deploy('bad', page('worse'))
    await until(async () => (await world.db.takedown.count({ where: { id: byName.id, endedAt: null } })) === 1)
    expect(await text(branchHost)).toBe('403')
    await putBack(world, byName.id)
    await shows(branchHost, 'worse')

    const { id: project } = await world.db.project.findFirstOrThrow({ where: { name: 'bad' } })
    const whole = await takeDown(world, { project })
    await shows(branchHost, '403')
    // Under the same name again: the host stays down.
    await deleteProject(world.db, world.urls, world.actor, { key: 'bad', precondition() {} })
    await world.newProject('bad')
    const again = await world.deploy('bad', page('again'))
    await shows(again.host, 'again')
    expect(await text(branchHost)).toBe('403')
    await putBack(world, whole.id)
    await shows(branchHost, 'again')

    await suspend(world, world.actor.accountId, true)
    await shows(branchHost, '403')
    await suspend(world, world.actor.accountId, false)
    await shows(branchHost, 'again')
  })
})

test('a table that is read whole, and one that is restored, show what one shows that followed the events', async () => {
  const { region } = world.config
  await createProject(world.db, world.urls, world.actor, { region, input: { name: 'mixed', repo: 'a/b' } })
  const refs = ['main', 'Main', 'feature/a', 'feature-a']
  const made: { id: string; branchHost: string }[] = []
  for (const ref of [...refs, ...refs, ...refs])
    made.push(await world.deploy('mixed', page(ref), { ref, ready: false }))
  for (const { id } of made.toReversed()) await world.ready(id)
  for (const { id } of made.slice(-3)) await remove(id)
  for (const { id } of made.filter((_, index) => index % refs.length === 0).slice(0, 2)) await remove(id)
  const none = () => {}
  const takeovers: Takeovers = { move: none, retire: none, halt: none, dropProject: none, close: none }
  const whole = new HostTable('localhost', takeovers)
  whole.apply(await readEdgeHosts(world.db))
  const restored = new HostTable('localhost', takeovers)
  restored.apply([...whole.rows()])
  const hosts = [...new Set(made.map(({ branchHost }) => branchHost))]
  expect(hosts).toHaveLength(refs.length)
  const targets = (find: (host: string) => { target: unknown } | undefined) => hosts.map((host) => find(host)?.target)
  const expected = targets((host) => whole.find(host)?.host)
  expect(expected.filter((target) => target)).toHaveLength(refs.length)
  await until(() => {
    const followed = targets((host) => world.edge.snapshot!.find(host))
    return JSON.stringify(followed) === JSON.stringify(expected)
  })
  expect(targets((host) => restored.find(host)?.host)).toEqual(expected)
  expect(restored.size).toBe(whole.size)
})
