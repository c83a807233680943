// `npm run bench -- events`: the API writes 1,000 events per second while a worker delivers them to 50 receivers.
// Each event goes to one webhook: 50 accounts with a webhook each share the load. API, worker, receivers, load and
// PostgreSQL are separate processes on one machine. Slices with and without webhooks alternate.
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Child, freePort, startChild, type Usage, withoutLimits } from '../children.ts'
import { median, quantile, table, verdict } from '../figures.ts'
import type { Received } from './receivers.ts'
import { type EventsBench, figures } from './rows.ts'
import { type Seeded, seed, sweep } from './seed.ts'
import { measureSingle } from './single.ts'
import { measureStreams } from './streams.ts'
import type { Written } from './writer.ts'

const receiverCount = 50
const drainMs = 60_000
const file = (name: string) => join(import.meta.dirname, name)

type Slice = Written & { webhooks: boolean; received: Received; apiCpuMs: number; workerCpuMs: number }

export const group = { about: 'Webhooks and event streams beside 1,000 writes per second', figures, run }

async function run(bench: EventsBench): Promise<void> {
  const { directory, atEnd } = bench
  const [rounds, seconds, rate] = [bench.rounds(3), bench.seconds(10), bench.size(1_000, 100)]
  const started = (name: string, env: Record<string, string>) => {
    const child = startChild(file(name), env, join(directory, `${name}.log`))
    // Even if another one that was started in parallel fails.
    atEnd(() => child.then(({ stop }) => stop()).catch(() => {}))
    return child
  }
  const postgres = await bench.startPostgres()
  const receivers = await started('receivers.ts', { RECEIVERS: String(receiverCount) })
  const ports = await receivers.ask<number[]>('ports')
  const secretsKey = randomBytes(32)
  const seeded = await seed(
    postgres,
    secretsKey,
    ports.map((port) => `http://127.0.0.1:${port}/`),
  )
  atEnd(() => seeded.client.end())
  const environment = (role: string, port: number) => ({
    BENCH_ROLE: role,
    NODE_ARGS: `--expose-gc ${role === 'worker' ? (process.env.BENCH_NODE_ARGS ?? '') : ''}`,
    DATABASE_URL: seeded.url,
    DATA_DIR: directory,
    PORT: String(port),
    METRICS_PORT: '0',
    ...withoutLimits,
    WEBHOOK_ALLOW_PRIVATE: 'true',
    SECRETS_KEY: secretsKey.toString('base64'),
  })
  const port = await freePort()
  const [api, worker, writer] = await Promise.all([
    started('server.ts', environment('api', port)),
    started('server.ts', environment('worker', port)),
    started('writer.ts', {}),
  ])
  const settleMs = bench.size(500, 50)
  const url = `http://127.0.0.1:${port}`
  const slice = (webhooks: boolean, forSeconds: number) =>
    measure({ api, worker, writer, receivers }, seeded, webhooks, {
      url,
      perSecond: rate,
      seconds: forSeconds,
      settleMs,
    })

  const slices: Slice[] = []
  for (const webhooks of [false, true]) await slice(webhooks, bench.size(2, 0.2))
  for (let round = 0; round < rounds; round++) {
    // Alternates the order, so that a machine that gets slower or faster favours no side.
    for (const webhooks of round % 2 === 0 ? [false, true] : [true, false]) {
      console.error(`${rate} events/s for ${seconds} s ${webhooks ? 'with' : 'without'} webhooks …`)
      slices.push(await slice(webhooks, seconds))
    }
  }
  report(bench, slices, rate)
  for (const child of [worker, api]) await child.stop()
  await measureSingle(bench, { receivers, start: () => started('server.ts', environment('worker', port)) }, seeded)
  // A separate server whose memory hasn't grown under load.
  const freshPort = await freePort()
  const [fresh, readers] = await Promise.all([
    started('server.ts', environment('api', freshPort)),
    started('readers.ts', {}),
  ])
  await measureStreams(bench, { api: fresh, readers, writer }, seeded, freshPort)
}

type Processes = { api: Child; worker: Child; writer: Child; receivers: Child }
type Pace = { url: string; perSecond: number; seconds: number; settleMs: number }

async function measure(
  processes: Processes,
  seeded: Seeded,
  webhooks: boolean,
  { settleMs, ...pace }: Pace,
): Promise<Slice> {
  const { api, worker, writer, receivers } = processes
  const { client, tokens } = seeded
  await client.query('UPDATE webhook SET active = $1', [webhooks])
  await receivers.ask<Received>('received')
  const before = [await api.ask<Usage>('usage'), await worker.ask<Usage>('usage')]
  const written = await writer.ask<Written>({ ...pace, tokens })
  const countEvents = async () => {
    // Requests in progress at the end write their events too.
    await sleep(settleMs)
    return (await client.query<{ count: number }>('SELECT count(*)::int AS count FROM event')).rows[0]!.count
  }
  let events = 0
  for (let now = await countEvents(); now > events; now = await countEvents()) events = now
  const endMs = Date.now() + drainMs
  while (webhooks && (await receivers.ask<number>('count')) < events && Date.now() < endMs) await sleep(50)
  const after = [await api.ask<Usage>('usage'), await worker.ask<Usage>('usage')]
  const received = await receivers.ask<Received>('received')
  // Delivery results are written a moment later.
  await sleep(settleMs)
  await sweep(client)
  const [apiCpuMs, workerCpuMs] = [0, 1].map((i) => after[i]!.cpuMs - before[i]!.cpuMs)
  return { ...written, events, webhooks, received, apiCpuMs: apiCpuMs!, workerCpuMs: workerCpuMs! }
}

function report(bench: EventsBench, slices: Slice[], rate: number): void {
  const lines = slices.map((one) => {
    const { delaysMs, requests } = one.received
    return [
      one.webhooks ? 'with webhooks' : 'without',
      one.perSecond.toFixed(0),
      one.p99Ms.toFixed(0),
      String(one.failures),
      String(one.events),
      one.webhooks ? String(one.received.events) : '-',
      one.webhooks ? String(requests) : '-',
      one.webhooks ? quantile(delaysMs, 0.5).toFixed(0) : '-',
      one.webhooks ? quantile(delaysMs, 0.99).toFixed(0) : '-',
      ((one.apiCpuMs * 1000) / one.events).toFixed(0),
      ((one.workerCpuMs * 1000) / one.events).toFixed(0),
    ]
  })
  const head = ['slice', 'written/s', 'API p99 ms', 'failures', 'events', 'delivered', 'requests']
  console.log(table([[...head, 'p50 ms', 'p99 ms', 'API µs/event', 'worker µs/event'], ...lines]))
  const [without, with_] = [slices.filter((one) => !one.webhooks), slices.filter((one) => one.webhooks)]
  const undelivered = with_.reduce((sum, one) => sum + one.events - one.received.events, 0)
  const p99Ms = Math.max(...with_.map((one) => quantile(one.received.delaysMs, 0.99)))
  const ratio = median(with_.map((one) => one.perSecond)) / median(without.map((one) => one.perSecond))
  const writtenPerSecond = median(with_.map((one) => one.perSecond))
  bench.record('writes', ratio)
  bench.record('delay', `${p99Ms.toFixed(0)} ms`)
  console.log(verdict(writtenPerSecond >= rate * 0.95, `${rate} events/s are written`, writtenPerSecond.toFixed(0)))
  console.log(verdict(undelivered === 0, 'every event is delivered', `${undelivered} are missing`))
  console.log(verdict(p99Ms < 1000, 'p99 from the change to the first attempt < 1 s', `${p99Ms.toFixed(0)} ms`))
  console.log(verdict(ratio >= 0.8, 'the API writes ≥ 0.8 of what it writes without webhooks', ratio.toFixed(2)))
}
