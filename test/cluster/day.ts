// What a customer does on an ordinary day, and whether it is seen at every machine that has to show it.
import { setTimeout as sleep } from 'node:timers/promises'
import { createDnsClient } from '../../bench/dns/client.ts'
import { until } from '../helpers/until.ts'
import type { Client } from '../prove/client.ts'
import { type Ledger, recordKey } from '../prove/ledger.ts'
import { type Edge, type Nameserver, read } from '../prove/visitors.ts'
import { repository, tags } from '../prove/writers.ts'

export type Furnished = { site: string; app: string; domain: string }

export type Day = Furnished & {
  client: Client
  /** Is told what was acknowledged. */
  ledger: Ledger
  edges: Edge[]
  nameservers: Nameserver[]
  /** Whether healthy instances of all servers are on every runner that is there. */
  isSpread(): Promise<boolean>
  /** Differs from day to day. */
  number: number
}

export const instances = 2
const settleMs = 120_000
const pauseMs = 100

type Deployment = { id: string; state: string; error: unknown }
type Wish = { project: string; ref: string; production: true }

async function deploy({ client, ledger }: Pick<Day, 'client' | 'ledger'>, body: Wish): Promise<void> {
  const { id } = (await client.call<Deployment>('POST', '/deployments', body)).body
  const { project, ref } = body
  ledger.put('deployment', id, { project, ref }, ['deployment.created', id])
  const { state, error } = await until(async () => {
    const found = (await client.call<Deployment>('GET', `/deployments/${id}?wait=5`)).body
    return found.state !== 'BUILDING' && found
  }, settleMs)
  if (state !== 'READY') throw new Error(`the deployment of ${body.project} is ${state}: ${JSON.stringify(error)}`)
}

/** A static site, a server project of two instances, and a domain with its certificate. */
export async function furnish(client: Client, ledger: Ledger, serverRepository: string): Promise<Furnished> {
  const domain = 'visited.test'
  const project = async (body: object) => {
    const { productionUrl } = (await client.call<{ productionUrl: string }>('POST', '/projects', body)).body
    return new URL(productionUrl).host
  }
  const site = await project({ name: 'site', framework: 'static', repo: repository })
  const app = await project({ name: 'app', framework: 'node', repo: serverRepository, settings: { instances } })
  await deploy({ client, ledger }, { project: 'site', ref: 'main', production: true })
  await deploy({ client, ledger }, { project: 'app', ref: 'main', production: true })
  await client.call('POST', '/domains', { project: 'site', name: domain })
  await until(
    async () => (await client.call<{ ssl: string }>('GET', `/domains/${domain}?wait=5`)).body.ssl === 'ACTIVE',
    settleMs,
  )
  return { site, app, domain }
}

const again = () => sleep(pauseMs, false)

/** A new version of the site, at every edge. */
async function useSites({ client, ledger, site, edges, number }: Day): Promise<void> {
  const ref = tags[number % tags.length]!
  await deploy({ client, ledger }, { project: 'site', ref, production: true })
  for (const edge of edges) {
    const page = () => read(edge, { host: site, text: '' }).catch(() => null)
    await until(async () => (await page())?.body.includes(ref) || again(), settleMs)
  }
}

/** As many processes of the server project as there shall be, through every edge. */
async function useServers({ app, edges, isSpread }: Day): Promise<void> {
  for (const edge of edges) {
    let marks = new Set<string>()
    await until(async () => {
      const answer = await read(edge, { host: app, text: '' }).catch(() => null)
      // A process that is gone counts no more.
      if (answer?.status !== 200) marks = new Set()
      else marks.add(answer.body)
      return marks.size >= instances || again()
    }, settleMs)
  }
  await until(async () => (await isSpread()) || again(), settleMs)
}

/** A new record, at every nameserver. */
async function useDns({ client, ledger, domain, nameservers, number }: Day): Promise<void> {
  const name = `day-${number}`
  const record = { type: 'A', name, value: '192.0.2.1' }
  const { id } = (await client.call<{ id: string }>('POST', `/dns/${domain}/records`, record)).body
  ledger.put('record', recordKey(domain, record), {}, ['dns.record.created', id])
  for (const { address, port } of nameservers) {
    const dnsClient = await createDnsClient(port, address)
    try {
      await until(
        async () => (await dnsClient.query(`${name}.${domain}`, 'A', 500))?.answers === 1 || again(),
        settleMs,
      )
    } finally {
      dnsClient.close()
    }
  }
}

/** How long each part took until it was seen everywhere. */
export async function spend(day: Day): Promise<Record<'site' | 'server' | 'dns', number>> {
  const startMs = performance.now()
  const timed = async (part: Promise<void>) => {
    await part
    return performance.now() - startMs
  }
  const [site, server, dns] = await Promise.all([useSites(day), useServers(day), useDns(day)].map(timed))
  return { site: site!, server: server!, dns: dns! }
}
