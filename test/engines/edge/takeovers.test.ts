import { setImmediate as turn } from 'node:timers/promises'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { createTakeovers, type Takeovers } from '../../../src/engines/edge/takeovers.ts'
import type { Host } from '../../../src/engines/edge/targets.ts'
import { until } from '../../helpers/until.ts'

const target = (deploymentId: string) => ({ deploymentId, projectId: 'prj' })

/** Servers that are healthy when the test says so. */
function start(retryMs?: number) {
  const unhealthy = new Set<string>()
  const calls: string[] = []
  const servers = {
    ready: async (id: string) => {
      calls.push(`ready ${id}`)
      if (unhealthy.has(id)) throw new Error('it does not listen')
    },
    retire: async (id: string) => void calls.push(`retire ${id}`),
    halt: async (id: string) => void calls.push(`halt ${id}`),
  }
  const takeovers: Takeovers = createTakeovers(servers, pino({ level: 'silent' }), retryMs)
  const host: Host = { projectId: 'prj', target: null, hsts: false, barred: false, gate: null, pins: null }
  return { takeovers, host, calls, unhealthy }
}

test('a server that is not healthy does not take over, and is tried again at the next reading', async () => {
  const { takeovers, host, calls, unhealthy } = start()
  takeovers.move(host, target('old'), true)
  unhealthy.add('new')
  takeovers.move(host, target('new'), true)
  await turn()
  expect(host.target?.deploymentId).toBe('old')
  unhealthy.clear()
  takeovers.move(host, target('new'), true)
  await turn()
  expect(host.target?.deploymentId).toBe('new')
  expect(calls.filter((call) => call.startsWith('retire'))).toEqual(['retire old'])
  takeovers.close()
})

test('it is tried again without a reading too, until another one is wanted', async () => {
  const { takeovers, host, calls, unhealthy } = start(1)
  takeovers.move(host, target('old'), true)
  unhealthy.add('new')
  takeovers.move(host, target('new'), true)
  const tries = () => calls.filter((call) => call === 'ready new').length
  await until(() => tries() > 2)
  expect(host.target?.deploymentId).toBe('old')
  unhealthy.clear()
  await until(() => host.target?.deploymentId === 'new')
  unhealthy.add('newer')
  takeovers.move(host, target('newer'), true)
  await turn()
  takeovers.move(host, target('new'), true)
  expect(host.target?.deploymentId).toBe('new')
  takeovers.close()
})

test("a project's first server is shown at once, whether it starts or not", async () => {
  const { takeovers, host, calls, unhealthy } = start()
  takeovers.move(host, null, true)
  unhealthy.add('first')
  takeovers.move(host, target('first'), true)
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
  for (const { projectId } of hosts.slice(0, 5)) takeovers.move(host(projectId), target(`of-${projectId}`), true)
  takeovers.move(hosts[5]!, target('last'), true)
  takeovers.dropProject('prj-5')
  await turn()
  expect(calls).toContain('ready of-prj-4')
  expect(calls).not.toContain('ready last')
  takeovers.close()
})

test('a barred project shows nothing and its server is stopped, until it is shown again from a cold start', async () => {
  const { takeovers, host, calls } = start()
  takeovers.move(host, target('one'), true)
  await turn()
  takeovers.move(host, target('two'), true)
  host.barred = true
  takeovers.move(host, target('two'), true)
  expect(host.target).toBeNull()
  expect(calls).toContain('halt one')
  await turn()
  // It was about to take over when the project was barred.
  expect(host.target).toBeNull()
  expect(calls).toContain('retire two')
  const fresh: Host = { projectId: 'prj', target: null, hsts: false, barred: true, gate: null, pins: null }
  takeovers.move(fresh, target('two'), true)
  expect(fresh.target).toBeNull()
  fresh.barred = false
  takeovers.move(fresh, target('two'), true)
  expect(fresh.target?.deploymentId).toBe('two')
  expect(calls.at(-1)).toBe('ready two')
  takeovers.close()
})
