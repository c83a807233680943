// Checks of signed zones as the job runs them, and time that passes.
import { expect } from 'vitest'
import { ask } from '../../../src/engines/verification/ask.ts'
import type { VerificationWorld } from './world.ts'

const hour = 3_600_000

export type Signing = ReturnType<typeof createSigning>

export function createSigning(world: VerificationWorld) {
  /** A domain that .com delegates here, verified. */
  async function delegated(name: string) {
    world.internet.delegations.set(name, world.ours)
    expect(await world.attach(name)).toMatchObject({ verified: true })
  }

  const read = async (name: string) => (await world.call('GET', `/dns/${name}/dnssec`)).body
  const put = async (name: string, body: object) => (await world.call('PUT', `/dns/${name}/dnssec`, { body })).body

  /** Runs the job as the worker would, and reads what came of it. */
  async function check(name: string) {
    await world.dnssec.run(
      { domainId: await world.idOf(name) },
      { attempt: 1, signal: new AbortController().signal, async requireHeld() {} },
    )
    return read(name)
  }

  /** Waits until both nameservers show so many keys. */
  async function served(name: string, count: number) {
    const shown = async (port: number) => {
      const bounds = { signal: AbortSignal.timeout(5_000), deadlineMs: performance.now() + 5_000 }
      const answer = await ask({ host: '127.0.0.1', port }, name, 'DNSKEY', bounds)
      return typeof answer === 'string' ? answer : answer.answer.length
    }
    for (const port of world.ports) await expect.poll(() => shown(port), { timeout: 20_000 }).toBe(count)
  }

  /** As if everything had been as it is for some hours longer. */
  async function later(name: string, hours: number) {
    const domainId = await world.idOf(name)
    const back = (time: Date | null) => time && new Date(time.getTime() - hours * hour)
    for (const { id, createdAt } of await world.db.zoneKey.findMany({ where: { domainId } })) {
      await world.db.zoneKey.update({ where: { id }, data: { createdAt: back(createdAt)! } })
    }
    const { dsSince, goneSince } = await world.db.zoneSigning.findUniqueOrThrow({ where: { domainId } })
    const data = { dsSince: back(dsSince), goneSince: back(goneSince) }
    await world.db.zoneSigning.update({ where: { domainId }, data })
  }

  async function signed(name: string) {
    await delegated(name)
    await check(name)
    await later(name, 2)
    await served(name, 1)
    const { ds } = await check(name)
    world.internet.ds.set(name, [ds[0].text])
    return check(name)
  }

  return { delegated, read, put, check, served, later, signed }
}
