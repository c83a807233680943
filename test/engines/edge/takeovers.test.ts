import { setImmediate as turn } from 'node:timers/promises'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import type { Host } from '../../../src/engines/edge/hosts.ts'
import type { Servers } from '../../../src/engines/edge/servers/servers.ts'
import { createTakeovers } from '../../../src/engines/edge/takeovers.ts'

const target = (deploymentId: string) => ({ deploymentId, projectId: 'prj' })

test('a server that is not healthy does not take over, and is tried again at the next reading', async () => {
  let healthy = false
  const retired: string[] = []
  const servers: Pick<Servers, 'keep' | 'ready' | 'retire'> = {
    keep() {},
    ready: async (id) => {
      if (id === 'new' && !healthy) throw new Error('it does not listen')
    },
    retire: async (id) => void retired.push(id),
  }
  const takeovers = createTakeovers(servers, pino({ level: 'silent' }))
  const host: Host = { projectId: 'prj', target: null, hsts: false }
  takeovers.move(host, target('old'), true)
  takeovers.move(host, target('new'), true)
  await turn()
  expect(host.target?.deploymentId).toBe('old')
  healthy = true
  takeovers.move(host, target('new'), true)
  await turn()
  expect(host.target?.deploymentId).toBe('new')
  expect(retired).toEqual(['old'])
})
