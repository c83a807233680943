// Slices of dnsperf load, in turns over several servers.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { median, medianRatio } from '../figures.ts'
import type { Bench } from '../group.ts'
import type { Server } from './servers.ts'

const execute = promisify(execFile)

/** Answers per second, and the server's CPU time per answer. */
export type Slice = { perSecond: number; cpuUs: number }
/** `dnssecOk` requests signatures. */
export type Target = { server: Server; mixFile: string; dnssecOk?: boolean }

// Enough sockets that servers with one per processor get a share on each, and enough queries in flight to avoid waiting, but
// not so many that a server's receive buffer drops some on a busy machine: it holds 256 small packets by default, up to a
// quarter of which may already be read. dnsperf waits ten seconds for every lost one.
const clients = 16
const threads = 2
const inFlight = 128
const maxLost = 0.001

/** Throws if answers were lost or were errors. Sends at most `perSecond` queries. */
export async function load(program: string, target: Target, limit: ['-l' | '-n', number], perSecond?: number) {
  const { server, mixFile, dnssecOk = false } = target
  const args = ['-s', '127.0.0.1', '-p', String(server.ports[0]), '-d', mixFile, '-e', '-c', String(clients)]
  args.push('-T', String(threads), '-q', String(inFlight), '-t', '10', limit[0], String(limit[1]))
  if (perSecond !== undefined) args.push('-Q', String(perSecond))
  if (dnssecOk) args.push('-D')
  const beforeMs = await server.cpuMs()
  const { stdout } = await execute(program, args)
  const usedMs = (await server.cpuMs()) - beforeMs
  const figure = (label: RegExp) => Number(label.exec(stdout)?.[1])
  const sent = figure(/Queries sent:\s+(\d+)/)
  const completed = figure(/Queries completed:\s+(\d+)/)
  const answersPerSecond = figure(/Queries per second:\s+([\d.]+)/)
  const wrong = /REFUSED|SERVFAIL|FORMERR|NOTIMP/.test(stdout)
  if (!(answersPerSecond > 0) || wrong || sent - completed > sent * maxLost) {
    throw new Error(`${server.name} under load:\n${stdout}`)
  }
  return { perSecond: answersPerSecond, cpuUs: (usedMs * 1000) / completed } satisfies Slice
}

/** The slices of each target, round by round. */
export async function loadInTurns(
  bench: Pick<Bench, 'size' | 'rounds' | 'seconds'>,
  program: string,
  targets: Target[],
  what: string,
) {
  const [rounds, seconds] = [bench.rounds(4), bench.size(bench.seconds(4), 0.25)]
  const slices: Slice[][] = targets.map(() => [])
  for (const target of targets) await load(program, target, ['-l', bench.size(1, 0.1)])
  for (let round = 0; round < rounds; round++) {
    console.error(`${what}, round ${round + 1} of ${rounds} …`)
    // Alternates the order, so that a machine that gets slower or faster favours no side.
    for (const index of round % 2 === 0 ? targets.keys() : [...targets.keys()].reverse()) {
      slices[index]!.push(await load(program, targets[index]!, ['-l', seconds]))
    }
  }
  return slices
}

export const middle = (slices: Slice[], figure: keyof Slice) => median(slices.map((slice) => slice[figure]))

/** The median of the ratios of slices in the same round. */
export function ratio(above: Slice[], below: Slice[]): number {
  const [one, other] = [above, below].map((slices) => slices.map(({ perSecond }) => perSecond))
  return medianRatio(one!, other!)
}
