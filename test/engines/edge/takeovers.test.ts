import { setImmediate as turn } from 'node:timers/promises'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { createTakeovers, type Takeovers } from '../../../src/engines/edge/hosts/takeovers.ts'
import type { Host } from '../../../src/engines/edge/hosts/targets.ts'
import { until } from '../../helpers/until.ts'

const server = { instances: 1, switching: false }
const target = (deploymentId: string) => ({ deploymentId, projectId: 'prj' })

/** Servers that are healthy when the test says so. */
function start(retryMs?: number) {
  const unhealthy = new Set<string>()
  const calls: string[] = []
  const shown: string[] = []
  const onShown = (projectId: string, deploymentId: string) => void shown.push(`${projectId} ${deploymentId}`)
  const servers = {
    ready: async (id: string) => {
      calls.push(`ready ${id}`)
      if (unhealthy.has(id)) throw new Error('it does not listen')
    },
    retire: async (id: string) => void calls.push(`retire ${id}`),
    halt: async (id: string) => void calls.push(`halt ${id}`),
  }
  const takeovers: Takeovers = createTakeovers(servers, onShown, pino({ level: 'silent' }), retryMs)
  const host: Host = { projectId: 'prj', target: null, hsts: false, barred: false, gate: null, pins: null }
  return { takeovers, host, calls, shown, unhealthy }
}

test('a server that is not healthy does not take over, and is tried again at the next reading', async () => {
  const { takeovers, host, calls, unhealthy } = start()
  takeovers.move(host, target('old'), server)
  unhealthy.add('new')
  takeovers.move(host, target('new'), server)
  await turn()
  expect(host.target?.deploymentId).toBe('old')
  unhealthy.clear()
  takeovers.move(host, target('new'), server)
  await turn()
  expect(host.target?.deploymentId).toBe('new')
  expect(calls.filter((call) => call.startsWith('retire'))).toEqual(['retire old'])
  takeovers.close()
})

test('it is tried again without a reading too, until another one is wanted', async () => {
  const { takeovers, host, calls, unhealthy } = start(1)
  takeovers.move(host, target('old'), server)
  unhealthy.add('new')
  takeovers.move(host, target('new'), server)
  const tries = () => calls.filter((call) => call === 'ready new').length
  await until(() => tries() > 2)
  expect(host.target?.deploymentId).toBe('old')
  unhealthy.clear()
  await until(() => host.target?.deploymentId === 'new')
  unhealthy.add('newer')
  takeovers.move(host, target('newer'), server)
  await turn()
  takeovers.move(host, target('new'), server)
  expect(host.target?.deploymentId).toBe('new')
  takeovers.close()
})

test("a project's first server is shown at once, whether it starts or not", async () => {
  const { takeovers, host, calls, unhealthy } = start()
  takeovers.move(host, null, server)
  unhealthy.add('first')
  takeovers.move(host, target('first'), server)
  expect(host.target?.deploymentId).toBe('first')
  await turn()
  expect(calls).toEqual(['ready first'])
  takeovers.dropProject('prj')
  expect(calls.at(-1)).toBe('retire first')
  expect(host.target).toBeNull()
  takeovers.close()
})

test('one that was replaced before its turn to start is not started', async () => {
  const { takeovers, calls } = start()
  const host = (projectId: string): Host => ({
    projectId,
    target: null,
    hsts: false,
    barred: false,
    gate: null,
    pins: null,
  })
  const hosts = Array.from({ length: 6 }, (_, n) => host(`prj-${n}`))
  for (const { projectId } of hosts.slice(0, 5)) takeovers.move(host(projectId), target(`of-${projectId}`), server)
  takeovers.move(hosts[5]!, target('last'), server)
  takeovers.dropProject('prj-5')
  await turn()
  expect(calls).toContain('ready of-prj-4')
  expect(calls).not.toContain('ready last')
  takeovers.close()
})

test('a barred project shows nothing and its server is stopped, until it is shown again from a cold start', async () => {
  const { takeovers, host, calls } = start()
  takeovers.move(host, target('one'), server)
  await turn()
  takeovers.move(host, target('two'), server)
  host.barred = true
  takeovers.move(host, target('two'), server)
  expect(host.target).toBeNull()
  expect(calls).toContain('halt one')
  await turn()
  // It was about to take over when the project was barred.
  expect(host.target).toBeNull()
  expect(calls).toContain('retire two')
  const fresh: Host = { projectId: 'prj', target: null, hsts: false, barred: true, gate: null, pins: null }
  takeovers.move(fresh, target('two'), server)
  expect(fresh.target).toBeNull()
  fresh.barred = false
  takeovers.move(fresh, target('two'), server)
  expect(fresh.target?.deploymentId).toBe('two')
  expect(calls.at(-1)).toBe('ready two')
  takeovers.close()
})

test('a switch that is waited for is told once it is shown: files at once, a server when enough instances are healthy', async () => {
  const { takeovers, host, shown, calls, unhealthy } = start(1)
  takeovers.move(host, target('page'), { instances: 0, switching: true })
  expect(shown).toEqual(['prj page'])
  unhealthy.add('app')
  takeovers.move(host, target('app'), { instances: 3, switching: true })
  await until(() => calls.filter((call) => call === 'ready app').length > 2)
  expect(shown).toEqual(['prj page'])
  unhealthy.clear()
  await until(() => shown.length > 1)
  expect(shown).toEqual(['prj page', 'prj app'])
  // Nobody waits any more.
  takeovers.move(host, target('app'), { instances: 3, switching: false })
  expect(shown).toHaveLength(2)
  takeovers.close()
})

test('a switch is told for what is barred, which is shown nowhere, and not for what was replaced meanwhile', async () => {
  const { takeovers, host, shown, unhealthy } = start()
  takeovers.move(host, target('one'), server)
  unhealthy.add('two')
  takeovers.move(host, target('two'), { instances: 1, switching: true })
  takeovers.move(host, target('one'), { instances: 1, switching: true })
  expect(shown).toEqual(['prj one'])
  host.barred = true
  takeovers.move(host, target('three'), { instances: 1, switching: true })
  expect(shown).toEqual(['prj one', 'prj three'])
  await turn()
  expect(shown).toHaveLength(2)
  takeovers.close()
})
