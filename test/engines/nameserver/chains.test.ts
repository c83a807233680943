// A chain that leads into a zone below is no denial of what that zone has.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { until } from '../../helpers/until.ts'
import { askUdp } from './packets.ts'
import { startWorld, type World } from './world.ts'

let world: World
beforeAll(async () => {
  world = await startWorld()
  await world.newDomain('above.com')
  await world.record('above.com', 'CNAME', 'one', 'host.below.above.com')
  await world.record('above.com', 'CNAME', '*.any', 'host.below.above.com')
  await world.record('above.com', 'DNAME', 'moved', 'below.above.com')
  await world.record('above.com', 'CNAME', 'nowhere', 'missing.above.com')
})
afterAll(() => world.stop())

const asked = async (name: string) => {
  const { rcode, answer, authority } = await askUdp(world.ports[0]!, `${name}.above.com`, 'A')
  return [rcode, answer.length, authority.length]
}

test('an answer ends with the chain, once its target is in a zone of its own', async () => {
  await until(async () => (await asked('moved'))[0] === 'NOERROR' && (await asked('nowhere'))[1] === 1)
  for (const name of ['one', 'x.any']) expect([name, ...(await asked(name))]).toEqual([name, 'NXDOMAIN', 1, 1])
  await world.newDomain('below.above.com')
  await world.record('below.above.com', 'A', 'host', '192.0.2.1')
  await until(async () => (await asked('host.below'))[1] === 1)
  for (const name of ['one', 'x.any']) expect([name, ...(await asked(name))]).toEqual([name, 'NOERROR', 1, 0])
  expect(await asked('host.moved')).toEqual(['NOERROR', 2, 0])
  expect(await asked('nowhere')).toEqual(['NXDOMAIN', 1, 1])
})
