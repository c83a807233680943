// Random sequences of suspensions, takedowns, their ends, deployments and new domains: no barred host shows anything.
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { createAccount } from '../../../src/services/accounts/accounts.ts'
import { createDeployment } from '../../../src/services/deployments/deployments.ts'
import { createDomain, deleteDomain } from '../../../src/services/domains/domains.ts'
import { markVerified } from '../../../src/services/domains/states.ts'
import type { Actor } from '../../../src/services/identity/actor.ts'
import { createProject, findProject } from '../../../src/services/projects/projects.ts'
import { valuesToTry } from '../../helpers/seed.ts'
import { until } from '../../helpers/until.ts'
import { expectNeutral, looksOver, putBack, suspend, takeDown } from './barring.ts'
import { startWorld, type World } from './world.ts'

vi.setConfig({ testTimeout: 180_000 })

type Site = { actor: Actor; project: string; projectId: string; hosts: Set<string> }

let world: World
const sites: Site[] = []
beforeAll(async () => {
  world = await startWorld()
  for (const name of ['one', 'two', 'three']) {
    // The first two projects are of one account, the third of another.
    const account = name === 'two' ? sites[0]!.actor.accountId : (await createAccount(world.db, name)).account.id
    const actor = { ...world.actor, accountId: account }
    const input = { name, repo: `a/${name}` }
    const { id } = await createProject(world.db, world.urls, actor, { region: 'r', input })
    sites.push({ actor, project: name, projectId: id, hosts: new Set([`${name}.localhost`]) })
    for (const domain of [`${name}.test`, `wild-${name}.test`, `*.wild-${name}.test`])
      await attach(sites.at(-1)!, domain)
    for (const domain of [`www.${name}.test`, `a.wild-${name}.test`]) sites.at(-1)!.hosts.add(domain)
    await deploy(sites.at(-1)!)
  }
})
afterAll(() => world.stop())

async function attach({ actor, project, hosts }: Site, name: string): Promise<void> {
  await createDomain(world.db, world.config, actor, { project, name })
  const { id } = await world.db.domain.findFirstOrThrow({ where: { name } })
  await markVerified(world.db, world.config, id, { method: 'txt', observed: { nameservers: [], txt: [] } })
  if (!name.startsWith('*')) hosts.add(name)
}

async function deploy({ actor, project: name, hosts }: Site): Promise<void> {
  const project = await findProject(world.db, actor, name)
  const plan = { project, ref: 'main', commit: 'c'.repeat(40), production: true, region: 'r', source: 'api' } as const
  const made = await createDeployment(world.db, world.urls, actor, plan).catch(() => null)
  if (!made) return
  const bytes = Buffer.from(`the page of ${name}`)
  const file = await world.artifacts.store('index.html', bytes.length, [bytes])
  const manifest = { version: 1, kind: 'static', files: { 'index.html': file }, spaFallback: false, cleanUrls: true }
  await world.artifacts.publish(made.id, manifest as Parameters<typeof world.artifacts.publish>[1])
  await world.ready(made.id)
  hosts.add(new URL(made.url).hostname)
}

/** What must be so, computed from the operator's acts alone. */
class Acts {
  readonly suspended = new Set<string>()
  readonly standing = new Map<string, { names: string[]; projectId: string | null }>()

  isBarred({ actor, projectId }: Site, host: string): boolean {
    if (this.suspended.has(actor.accountId)) return true
    const standing = [...this.standing.values()]
    if (standing.some((one) => one.projectId === projectId)) return true
    const [, ...rest] = host.split('.')
    const covering = [host, `*.${rest.join('.')}`, ...(host.startsWith('www.') ? [rest.join('.')] : [])]
    return standing.some(({ names }) => covering.some((name) => names.includes(name)))
  }
}

let domains = 0
const pick = <T>(items: T[], n: number): T | undefined => items[n % Math.max(items.length, 1)]

const step = fc.record({
  act: fc.constantFrom('suspend', 'resume', 'host', 'wildcard', 'project', 'end', 'deploy', 'attach', 'move'),
  site: fc.nat(2),
  n: fc.nat(20),
})

async function play(acts: Acts, { act, site: index, n }: { act: string; site: number; n: number }): Promise<void> {
  const site = sites[index]!
  const { accountId } = site.actor
  const record = async (what: { host: string } | { project: string }) => {
    const { id, hosts, host, project } = await takeDown(world, what)
    acts.standing.set(id, { names: hosts, projectId: host === null ? project : null })
  }
  if (act === 'suspend') {
    await suspend(world, accountId, true)
    acts.suspended.add(accountId)
  } else if (act === 'resume') {
    await suspend(world, accountId, false)
    acts.suspended.delete(accountId)
  } else if (act === 'host') await record({ host: pick([...site.hosts], n)! })
  else if (act === 'wildcard') await record({ host: `*.wild-${site.project}.test` })
  else if (act === 'project') await record({ project: site.projectId })
  else if (act === 'deploy') await deploy(site)
  else if (act === 'attach') await attach(site, `d${++domains}.test`)
  else if (act === 'move') {
    // From one project of the first account to the other.
    const name = [...sites[0]!.hosts].find((host) => /^d\d+\.test$/.test(host))
    if (!name) return
    await deleteDomain(world.db, world.config, sites[0]!.actor, { path: name, precondition: () => {} })
    sites[0]!.hosts.delete(name)
    await attach(sites[1]!, name)
  } else {
    const id = pick([...acts.standing.keys()], n)
    if (!id) return
    await putBack(world, id)
    acts.standing.delete(id)
  }
}

test('every barred host answers the neutral page, and every other one its site', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 8 }), async (steps) => {
      const acts = new Acts()
      for (const one of steps) await play(acts, one)
      for (const site of sites) {
        for (const host of site.hosts) {
          const barred = acts.isBarred(site, host)
          await until(() => world.edge.snapshot!.find(host)?.barred === barred)
          if (barred) expectNeutral(await looksOver(world, host), ['the page of'])
          else await until(async () => (await world.get(host, '/')).text === `the page of ${site.project}`)
        }
      }
      for (const id of acts.standing.keys()) await putBack(world, id)
      for (const accountId of acts.suspended) await suspend(world, accountId, false)
    }),
    { numRuns: valuesToTry(15) },
  )
  expect(await world.db.takedown.count({ where: { endedAt: null } })).toBe(0)
})
