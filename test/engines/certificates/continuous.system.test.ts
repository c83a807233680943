import { get } from 'node:https'
import { setTimeout as sleep } from 'node:timers/promises'
import type { TLSSocket } from 'node:tls'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startWorker, type Worker } from '../../../src/jobs/worker.ts'
import { until } from '../../helpers/until.ts'
import { isPebbleInstalled } from './pebble.ts'
import { startWorld, type World } from './world.ts'

// A renewal is due after two thirds of it; the last third is what a busy machine has for it.
const validitySeconds = 60
const changes = 2
const hosts = ['by-http.com', 'by-dns.com', 'www.by-dns.com']
const wanted = isPebbleInstalled()

let world: World
let worker: Worker
beforeAll(async () => {
  if (!wanted) return
  world = await startWorld({ validitySeconds })
  const { issue } = await world.engine()
  worker = startWorker(world.db, world.deps.notifications, world.deps.log, { issue })
})
afterAll(async () => {
  await worker?.stop()
  await world?.stop()
})

describe.skipIf(!wanted)('a site under continuous HTTPS', () => {
  test('changes its certificate again and again without one connection that fails or a moment that is not ACTIVE', async () => {
    for (const [name, method] of [
      ['by-http.com', 'txt'],
      ['by-dns.com', 'nameservers'],
    ] as const) {
      await world.verified(name, method)
      await until(async () => (await world.domain(name)).ssl === 'ACTIVE')
    }
    const ca = await world.pebble.root()
    const serials = new Map<string, Set<string>>()
    const failures: string[] = []
    const states = new Set<string>()
    let connections = 0

    function visit(host: string): Promise<void> {
      return new Promise((resolve) => {
        const options = {
          host: '127.0.0.1',
          port: world.httpsPort,
          servername: host,
          headers: { host },
          ca,
          agent: false,
        }
        const asked = get(options, (response) => {
          const { serialNumber } = (response.socket as TLSSocket).getPeerCertificate()
          serials.set(host, (serials.get(host) ?? new Set()).add(serialNumber))
          connections++
          response.resume().on('end', resolve)
        })
        asked.on('error', (error) => {
          failures.push(`${host}: ${error.message}`)
          resolve()
        })
      })
    }

    while (failures.length === 0 && hosts.some((host) => (serials.get(host)?.size ?? 0) <= changes)) {
      for (const host of hosts) await visit(host)
      for (const name of ['by-http.com', 'by-dns.com']) states.add((await world.domain(name)).ssl)
      await sleep(50)
    }
    const seen = [...serials].map(([host, { size }]) => `${host}: ${size} certificates`)
    console.log(`${connections} connections, ${failures.length} failed; ${seen.join(', ')}`)
    expect(failures).toEqual([])
    expect([...states]).toEqual(['ACTIVE'])
  })
})
