// A zone that is refused: secondaries neither find it in the catalog nor get it.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { catalogName } from '../../../../src/engines/nameserver/transfer/catalog.ts'
import { createAccount } from '../../../../src/services/accounts/accounts.ts'
import { until } from '../../../helpers/until.ts'
import { isMissing, keyArgument, startWorld, type World } from './world.ts'

let world: World
let desk: string
beforeAll(async () => {
  world = await startWorld()
  desk = (await createAccount(world.api.db, 'the desk', ['operator'])).token
  await world.addDomain('refused.dev')
  await world.settled('refused.dev')
})
afterAll(() => world.stop())

const set = (body: object) =>
  world.api.call('PATCH', `/operator/accounts/${world.api.accountId}`, { token: desk, body })
const transfer = (zone: string) => world.kdig('-y', keyArgument, 'AXFR', zone)

describe.skipIf(isMissing('kdig'))('a zone of a suspended account', () => {
  test('leaves the catalog and is not transferred while it is refused, and comes back', async () => {
    await until(async () => (await transfer(catalogName)).includes('refused.dev.'))
    expect(await transfer('refused.dev')).toMatch(/refused\.dev\.\s+\d+\s+IN\s+SOA/)
    await set({ suspended: true, dns: 'refuse' })
    await until(async () => !(await transfer(catalogName)).includes('refused.dev.'))
    expect(await transfer('refused.dev')).toMatch(/NOTAUTH/)
    await set({ suspended: false })
    await until(async () => (await transfer(catalogName)).includes('refused.dev.'))
    expect(await transfer('refused.dev')).toMatch(/refused\.dev\.\s+\d+\s+IN\s+SOA/)
  })
})
