// Production goes back and forth between deployments of a server with several instances while visitors ask for it.
// BERTH_SWITCHES says how often, for a longer proof than that of every run.
import { Agent, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, expect, test } from 'vitest'
import { promoteDeployment } from '../../../src/services/production/promotion.ts'
import { until } from '../../helpers/until.ts'
import { type Cluster, startCluster } from './cluster.ts'

const switches = Number(process.env.BERTH_SWITCHES ?? 4)
const visitors = 8

let cluster: Cluster
afterEach(() => cluster.stop())

/** Visitors who ask again as soon as they are answered; returns what ends them, with their numbers by status. */
function visit(host: string) {
  const agent = new Agent({ keepAlive: true, maxSockets: visitors })
  const counts: Record<string, number> = {}
  let over = false
  const ask = () =>
    new Promise<string>((resolve) => {
      // Every fourth visit sends a body, which is never sent twice.
      const method = Math.random() < 0.25 ? 'POST' : 'GET'
      const sent = request({ port: cluster.port, host: '127.0.0.1', agent, method, headers: { host } }, (response) => {
        response
          .resume()
          .on('end', () => resolve(String(response.statusCode)))
          .on('error', () => resolve('cut off'))
      })
      sent.on('error', (error) => resolve(error.message)).end(method === 'POST' ? 'x'.repeat(2_000) : undefined)
    })
  const ended = Promise.all(
    Array.from({ length: visitors }, async () => {
      while (!over) {
        const outcome = await ask()
        counts[outcome] = (counts[outcome] ?? 0) + 1
      }
    }),
  )
  return async () => {
    over = true
    await ended
    agent.destroy()
    return counts
  }
}

test.each([
  [1, 1],
  [2, 1],
  [5, 1],
  [1, 3],
  [2, 3],
  [5, 3],
])('no request fails with %i instances on %i runners', async (instances, runners) => {
  cluster = await startCluster()
  const { db, urls, actor } = cluster
  for (let n = 0; n < runners; n++) await cluster.addRunner(`runner-${n}`)
  const first = await cluster.serve('switched', instances)
  const second = await cluster.serveAnother('switched')
  const host = 'switched.localhost'
  await until(async () => (await cluster.get(host, '/')).status === 200)
  const end = visit(host)
  for (let n = 0; n < switches; n++) {
    const { id } = n % 2 === 0 ? first : second
    await promoteDeployment(db, urls, actor, { id })
    await until(
      async () =>
        (await db.production.count({ where: { until: null, deploymentId: id, servedAt: { not: null } } })) > 0,
    )
    // What was replaced is ended before, during or after the next switch.
    await sleep(Math.random() * 400)
  }
  const counts = await end()
  console.log(`${instances} instances, ${runners} runners, ${switches} switches: ${JSON.stringify(counts)}`)
  expect(Object.keys(counts)).toEqual(['200'])
  // The one that is not production is left with no instance but what its own address needs.
  const other = switches % 2 === 0 ? first : second
  await until(async () => (await cluster.instances(other.id)).every(({ slot }) => slot === 0))
})
