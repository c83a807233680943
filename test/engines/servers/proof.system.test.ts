import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { until } from '../../helpers/until.ts'
import { type ServedPlatform, startServedPlatform, type Version } from './platform.ts'
import { processesWith } from './world.ts'

vi.setConfig({ testTimeout: 180_000 })

const current = async (platform: ServedPlatform, id: string) =>
  (await platform.api.call('GET', `/deployments/${id}`)).body.current

/** Visits without a pause until it is told to stop; returns the answers, each once. */
function visitors(
  platform: ServedPlatform,
  address: string,
  clients = 4,
): { count(): number; stop(): Promise<string[]> } {
  const answers: string[] = []
  let over = false
  const visits = Array.from({ length: clients }, async () => {
    while (!over) answers.push(await platform.visit(address))
  })
  const all = Promise.all(visits)
  // A failure is told by `stop`.
  all.catch(() => {})
  return {
    count: () => answers.length,
    async stop() {
      over = true
      await all
      return [...new Set(answers)].sort()
    },
  }
}

const nameOf = (version: Version) => `app-${version.toLowerCase()}`

describe('a server deployment that does not answer', () => {
  let platform: ServedPlatform
  const projects = new Map<Version, { productionUrl: string; first: { id: string } }>()
  beforeAll(async () => {
    platform = await startServedPlatform({ startTimeoutMs: 20_000 })
    // One after the other, so that each of them has started in that time, on a busy machine too.
    for (const version of ['deaf', 'ending', 'brief', 'headOnly', 'sick'] as const) {
      const name = nameOf(version)
      const { productionUrl } = await platform.newProject(name)
      const first = await platform.deployed(name, 'v1')
      expect(first).toMatchObject({ state: 'READY', current: true })
      projects.set(version, { productionUrl, first })
    }
  }, 300_000)
  afterAll(() => platform.stop())

  // Side by side: three of them take the whole time that a server has to start.
  test.concurrent.each([
    { version: 'deaf', reason: 'nothing listens at the port', printed: 'I listen to nobody' },
    { version: 'ending', reason: 'The server exited with 7', printed: 'no database to be found' },
    { version: 'brief', reason: 'The server exited with 1 just after its first answer', printed: 'this was all' },
    { version: 'headOnly', reason: 'it sends the head of an answer and nothing more', printed: 'only a head' },
    { version: 'sick', reason: 'it answers GET / with 500', printed: 'exec node server.js' },
  ] as const)('because it is $version ends in ERROR, and production goes on', async ({ version, reason, printed }) => {
    const { productionUrl, first } = projects.get(version)!
    const load = visitors(platform, productionUrl, 1)
    const { id, label } = await platform.begin(nameOf(version), version)
    const failed = await platform.settled(id)
    expect(failed).toMatchObject({ state: 'ERROR', current: false, error: { code: 'server_unhealthy' } })
    expect(failed.error.message).toContain(reason)
    // What npm prints before it starts the server says nothing.
    if (version !== 'sick') expect(failed.error.message).toContain(printed)
    expect(processesWith(label)).toEqual([])
    await until(async () => (await platform.artifacts.read(id)) === null)
    const log = await platform.log(id)
    expect(log).toContain(reason)
    expect(log).toMatch(new RegExp(`^run: .*${printed}`, 'm'))
    const seen = load.count()
    await until(() => load.count() > seen + 20)
    expect(await load.stop()).toEqual(['200 v1 v1'])
    expect(await current(platform, first.id)).toBe(true)
    expect(await platform.visit(failed.url)).toMatch(/^404 /)
  })
})

describe('a server deployment', () => {
  let platform: ServedPlatform
  beforeAll(async () => {
    platform = await startServedPlatform({ idleMs: 1_500 })
  })
  afterAll(() => platform.stop())

  test.concurrent('that starts slowly is READY when it has answered, and the first request after that is', async () => {
    const { productionUrl } = await platform.newProject('slow')
    const { id, url } = await platform.begin('slow', 'slow')
    expect(await platform.settled(id)).toMatchObject({ state: 'READY', current: true })
    const answers = await Promise.all([platform.visit(url), platform.visit(productionUrl)])
    expect(answers).toEqual(['200 slow slow', '200 slow slow'])
    // Proved and served by one process.
    expect((await platform.log(id)).match(/The server answers after/g)).toHaveLength(1)
  })

  test.concurrent('that is a preview is stopped when nobody visits it, and started by the next who does', async () => {
    await platform.newProject('preview')
    const { id, url, label } = await platform.begin('preview', 'v1', false)
    expect(await platform.settled(id)).toMatchObject({ state: 'READY', current: false })
    await until(() => processesWith(label).length === 0)
    expect(await platform.visit(url)).toBe('200 v1 v1')
  })

  test.concurrent('that is deleted once it is READY leaves no process', async () => {
    await platform.newProject('gone')
    const { id, label } = await platform.begin('gone', 'v1', false)
    expect((await platform.settled(id)).state).toBe('READY')
    expect((await platform.api.call('DELETE', `/deployments/${id}`)).status).toBe(204)
    await until(() => processesWith(label).length === 0)
  })

  test('takes production over under load without a failed or a mixed answer', async () => {
    const { productionUrl } = await platform.newProject('busy')
    const first = await platform.deployed('busy', 'v1')
    const load = visitors(platform, productionUrl)
    await until(() => load.count() > 20)
    const second = await platform.deployed('busy', 'v2')
    expect(second).toMatchObject({ state: 'READY', current: true })
    await until(async () => (await platform.visit(productionUrl)) === '200 v2 v2')
    const seen = load.count()
    await until(() => load.count() > seen + 20)
    expect(await load.stop()).toEqual(['200 v1 v1', '200 v2 v2'])
    expect(await current(platform, first.id)).toBe(false)
  })

  test('is waited for after a restart of the edge', async () => {
    const { productionUrl } = await platform.newProject('again')
    const first = await platform.deployed('again', 'slow')
    await platform.restartEdge()
    const answers = Array.from({ length: 20 }, (_, n) => platform.visit(n % 2 ? productionUrl : first.url))
    expect([...new Set(await Promise.all(answers))]).toEqual(['200 slow slow'])
  })
})

describe('an edge without a runner in its process', () => {
  let platform: ServedPlatform
  beforeAll(async () => {
    platform = await startServedPlatform({}, { apart: true })
  })
  afterAll(() => platform.stop())

  test('serves what was proved, by the process that was', async () => {
    const { productionUrl } = await platform.newProject('apart')
    const { id, url } = await platform.begin('apart', 'v1')
    expect(await platform.settled(id)).toMatchObject({ state: 'READY', current: true })
    await until(() => platform.edge.snapshot!.find(new URL(url).hostname))
    expect(await Promise.all([platform.visit(url), platform.visit(productionUrl)])).toEqual(['200 v1 v1', '200 v1 v1'])
    expect((await platform.log(id)).match(/The server answers after/g)).toHaveLength(1)
    const load = visitors(platform, productionUrl)
    await platform.deployed('apart', 'v2')
    await until(async () => (await platform.visit(productionUrl)) === '200 v2 v2')
    const ended = await platform.deployed('apart', 'ending')
    expect(ended).toMatchObject({ state: 'ERROR', error: { code: 'server_unhealthy' } })
    expect(await load.stop()).toEqual(['200 v1 v1', '200 v2 v2'])
  })

  test.concurrent.each(['canceled', 'deleted with its project'])(
    'leaves nothing of a proof that is %s',
    async (how) => {
      const name = `stopped-${how.split(' ')[0]}`
      await platform.newProject(name)
      const { id, label } = await platform.begin(name, 'deaf')
      await until(() => processesWith(label).length > 0)
      const [method, path] =
        how === 'canceled' ? ['POST', `/deployments/${id}/cancel`] : ['DELETE', `/projects/${name}`]
      expect((await platform.api.call(method!, path!)).status).toBeLessThan(300)
      await until(() => processesWith(label).length === 0)
      await until(async () => (await platform.api.db.job.count({ where: { kind: 'build', key: id } })) === 0)
      expect(await platform.artifacts.read(id)).toBeNull()
      if (how === 'canceled') expect((await platform.settled(id)).state).toBe('CANCELED')
    },
  )
})
