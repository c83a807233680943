// The API, Berth's nameservers and the verification on one database, with a small internet around them.
import { pino } from 'pino'
import { createVerification, type VerificationOptions } from '../../../src/engines/verification/verification.ts'
import type { Handler } from '../../../src/jobs/worker.ts'
import { startWorld, type World } from '../nameserver/world.ts'
import { type Internet, startInternet } from './internet.ts'

export type VerificationWorld = World & {
  internet: Internet
  verify: Handler<'verify'>
  dnssec: Handler<'dnssec'>
  options: VerificationOptions
  /** What the service's nameservers are called: the whole pool, of two unless a test wants more. */
  ours: string[]
  idOf(name: string, token?: string): Promise<string>
  // biome-ignore lint/suspicious/noExplicitAny: tests look at what came, whatever its shape.
  read(name: string, token?: string): Promise<any>
  /** Attaches a domain and runs its first check. */
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  attach(name: string, token?: string): Promise<any>
  /** Runs a check as its job would, and reads the domain. */
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  check(name: string, token?: string): Promise<any>
  events(name: string, accountId?: string): Promise<string[]>
  newOwner(): Promise<{ accountId: string; token: string }>
}

export const poolOfEight = Array.from({ length: 8 }, (_, index) => `ns${index + 1}.berth.example`)

export async function startVerificationWorld(pool?: readonly string[]): Promise<VerificationWorld> {
  const internet = await startInternet()
  const world = await startWorld({}, { DNS_RESOLVERS: internet.resolver, ...(pool && { NAMESERVERS: pool.join() }) })
  const { api, config } = { api: world, config: world.config }
  const ours = config.nameservers
  for (const [index, name] of ours.entries()) {
    internet.place(name, `203.0.113.${(index % 2) + 1}`, world.ports[index % 2]!)
  }
  const options: VerificationOptions = {
    config: { ...config, nameserverListen: world.ports.map((port) => `127.0.0.1:${port}`) },
    db: api.db,
    vault: api.deps.vault,
    log: pino({ level: 'silent' }),
    reach: internet.reach,
  }
  const { verify, dnssec } = createVerification(options)
  const accounts = new Map([[api.token, api.accountId]])
  const self: VerificationWorld = {
    ...world,
    internet,
    verify,
    dnssec,
    options,
    ours,
    async idOf(name, token = api.token) {
      return (await api.db.domain.findFirstOrThrow({ where: { name, accountId: accounts.get(token)! } })).id
    },
    async read(name, token = api.token) {
      return (await api.call('GET', `/domains/${name}`, { token })).body
    },
    async attach(name, token = api.token) {
      await world.newDomain(name, token)
      return self.check(name, token)
    },
    async check(name, token = api.token) {
      const signal = new AbortController().signal
      await verify.run({ domainId: await self.idOf(name, token) }, { attempt: 1, signal, async requireHeld() {} })
      return self.read(name, token)
    },
    async events(name, accountId = api.accountId) {
      const found = await api.db.event.findMany({ where: { subject: name, accountId }, orderBy: { seq: 'asc' } })
      return found.map(({ type }) => type)
    },
    async newOwner() {
      const owner = await api.newAccount()
      accounts.set(owner.token, owner.accountId)
      return owner
    },
    async stop() {
      await world.stop()
      await internet.stop()
    },
  }
  return self
}
