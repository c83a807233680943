// A signed zone of 100,000 records reaches every kind of secondary while others start transfers and break
// them off, again and again without a pause.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { until } from '../../../helpers/until.ts'
import { askUdp } from '../packets.ts'
import { abortTransfer, importSigned, programs, startSecondary } from './large-signed.ts'
import { isMissing, run, startWorld, type World } from './world.ts'

const zone = 'large.dev'
const records = 100_000
const patienceMs = 300_000

describe.skipIf(isMissing('dig'))('a large signed zone', () => {
  let world: World
  beforeAll(async () => {
    world = await startWorld()
    await world.addDomain('small.dev')
    await world.settled('small.dev')
    await importSigned(world, zone, records)
  }, 900_000)
  afterAll(() => world?.stop())

  test.each(programs)('reaches %s while transfers are broken off', { timeout: 600_000 }, async (program) => {
    if (isMissing(program)) return
    // A new one has aborted no transfer yet, so it may start some.
    const made = await world.api.call('POST', `/dns/${zone}/keys`, { body: { name: program, purpose: 'transfer' } })
    const key = { name: made.body.keyName, secret: Buffer.from(made.body.secret, 'base64') }
    const secondary = await startSecondary(world, program, zone)
    const ended = new AbortController()
    let broken = 0
    const breaking = async () => {
      for (; !ended.signal.aborted; broken++) await abortTransfer(world.port, zone, key, ended.signal)
    }
    const breakers = [breaking(), breaking(), breaking()]
    let answered = 0
    try {
      const last = `n${records - 1}.${zone}`
      const ask = () =>
        run('dig', ['@127.0.0.1', '-p', `${secondary.port}`, '+tries=1', '+time=1', '+dnssec', last, 'A'])
      await until(async () => {
        await askUdp(world.port, 'small.dev', 'A')
        answered++
        // Each one that is broken off makes the key wait longer for the next, however fast the secondary is.
        return broken > 3 && /RRSIG\s+A/.test(await ask())
      }, patienceMs).catch((error) => {
        throw new Error(`${error}\n${secondary.output().slice(-3_000)}`)
      })
    } finally {
      ended.abort()
      await Promise.all(breakers)
      await secondary.stop()
    }
    expect(broken).toBeGreaterThan(3)
    expect(answered).toBeGreaterThan(0)
  })
})
