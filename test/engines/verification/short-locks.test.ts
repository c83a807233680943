// Checks hold a domain for few statements: on a busy machine each takes a while, and whoever changes its records waits.
import pg from 'pg'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { startVerificationWorld, type VerificationWorld } from './world.ts'

let world: VerificationWorld
beforeAll(async () => {
  world = await startVerificationWorld()
})
afterAll(() => world.stop())

const locking = /FROM domain .*FOR (NO KEY )?UPDATE|UPDATE "public"\."domain"/s

/** The statements of each transaction that holds a domain, from the one that locks it. */
function watchHolds() {
  const open = new Map<pg.Client, string[]>()
  const holds: string[][] = []
  const query = pg.Client.prototype.query as (...args: unknown[]) => unknown
  const spy = vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (this: pg.Client, ...args: unknown[]) {
    const [asked] = args as [string | { text: string }]
    const text = typeof asked === 'string' ? asked : asked.text
    if (open.has(this) || locking.test(text)) open.set(this, [...(open.get(this) ?? []), text])
    if (/^(COMMIT|ROLLBACK)/.test(text) && open.has(this)) {
      holds.push(open.get(this)!)
      open.delete(this)
    }
    return query.apply(this, args)
  } as never)
  return { holds, end: () => spy.mockRestore() }
}

test('the first checks of a domain and of its signing hold it for few statements', async () => {
  await world.newDomain('short.com')
  const domainId = await world.idOf('short.com')
  world.internet.delegations.set('short.com', world.ours)
  const job = { attempt: 1, signal: new AbortController().signal, async requireHeld() {} }
  const { holds, end } = watchHolds()
  await world.verify.run({ domainId }, job)
  await world.dnssec.run({ domainId }, job)
  end()
  expect(await world.read('short.com')).toMatchObject({ verified: true })
  expect((await world.call('GET', '/dns/short.com/dnssec')).body).toMatchObject({ state: 'SIGNING' })
  expect(holds.map(({ length }) => length)).toEqual([9, 8])
})
