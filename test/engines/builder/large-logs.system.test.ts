// Builds whose output goes over what a log keeps.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Platform, scripts, startPlatform } from './host.ts'

let platform: Platform
beforeAll(async () => {
  platform = await startPlatform()
})
afterAll(() => platform.stop())

const deployed = async (name: string, files: Record<string, string>, body: object = {}) => {
  await platform.project(name, files, body)
  const id = await platform.deploy(name)
  return { id, deployment: await platform.settled(id) }
}

test('a log that runs away is cut at 10 MB and says so', async () => {
  const build = 'head -c 12000000 /dev/zero | tr "\\0" x | fold -w 2000; mkdir dist; touch dist/x'
  const { id, deployment } = await deployed('chatty', { 'package.json': scripts({ build }) })
  expect(deployment.state).toBe('READY')
  const last = await platform.api.db.logLine.findMany({ where: { deploymentId: id, text: { contains: '10 MB' } } })
  expect(last).toHaveLength(1)
})

test('a log of blank lines is cut at 100,000 and says so', async () => {
  const settings = { buildCommand: "yes '' | head -n 150000; mkdir dist; touch dist/x", buildNetwork: 'none' }
  const { id, deployment } = await deployed('blank', { x: '' }, { settings })
  expect(deployment.state).toBe('READY')
  expect(await platform.api.db.logLine.count({ where: { deploymentId: id } })).toBeLessThanOrEqual(100_001)
  const last = await platform.api.db.logLine.findMany({
    where: { deploymentId: id, text: { contains: '100000 lines' } },
  })
  expect(last).toHaveLength(1)
})
