// Asks validating resolvers the same questions again and again, and notes every answer that is not what it has to be.
import { setTimeout as sleep } from 'node:timers/promises'
import { exchangeOverTcp, exchangeOverUdp } from '../../src/dns/packet/exchange.ts'
import { type Message, question, readMessage } from '../engines/nameserver/packets.ts'
import { until } from '../helpers/until.ts'

export type Question = {
  name: string | (() => string)
  type: number
  /** What has to come; a text is what is wrong with it. */
  isRight(message: Message): boolean
  /** Never proved, whatever the zone: behind a delegation that is not signed. */
  insecure?: boolean
}

export type Resolver = { name: string; address: string }

/** An answer that is not what it has to be. */
export type Wrong = { at: string; phase: string; name: string; type: number; resolver: string; said: string }

export type Checker = {
  /** Whether answers have to be proved from now on. */
  secure: boolean
  /** What happens now, for what is noted. */
  phase: string
  readonly asked: number
  /** Answers that resolvers said to be proved. */
  readonly proved: number
  /** Without an answer in time: a busy machine. */
  readonly late: number
  readonly wrong: readonly Wrong[]
  /** Resolvers whose only server is away: what these say meanwhile does not count. */
  readonly excused: Set<string>
  stop(): Promise<void>
}

const waitMs = 15_000
const authenticated = 0x20

/** One question with DO, over TCP where the answer does not fit; null without an answer. */
export async function resolve(
  address: string,
  name: string,
  type: number,
): Promise<{ message: Message; proved: boolean } | null> {
  const packet = question(name, type, { rd: true, edns: 1232, dnssecOk: true })
  const server = { host: address, port: 53 }
  let answer = await exchangeOverUdp(server, packet, { timeoutMs: waitMs, resendMs: 5_000 })
  if (typeof answer !== 'string' && readMessage(answer).tc) {
    answer = await exchangeOverTcp(server, packet, { timeoutMs: waitMs })
  }
  if (typeof answer === 'string') return null
  return { message: readMessage(answer), proved: (answer[3]! & authenticated) !== 0 }
}

let denied = 0

/** Waits until resolvers take a zone as not signed: they may have read its keys just before its DS expired, and keep them. */
export async function forgetDs(resolvers: readonly Resolver[], zone: string): Promise<void> {
  for (const { address } of resolvers) {
    await until(async () => (await resolve(address, `forgotten${++denied}.${zone}`, 1))?.proved === false, 60_000)
  }
}

export function startChecker(resolvers: readonly Resolver[], questions: readonly Question[], pauseMs: number): Checker {
  const wrong: Wrong[] = []
  let stopped = false
  const checker = { secure: false, phase: 'start', asked: 0, proved: 0, late: 0, wrong, excused: new Set<string>() }

  async function ask(resolver: Resolver, { name, type, isRight, insecure = false }: Question): Promise<void> {
    const owner = typeof name === 'string' ? name : name()
    const { phase, secure } = checker
    const wasExcused = checker.excused.has(resolver.name)
    const got = await resolve(resolver.address, owner, type)
    if (wasExcused || checker.excused.has(resolver.name)) return
    checker.asked++
    if (!got) {
      checker.late++
      return
    }
    const { message, proved } = got
    if (proved) checker.proved++
    const unproved = secure && checker.secure && !insecure && !proved
    if (isRight(message) && !unproved) return
    const said = `${message.rcode}, ${message.answer.length} records${proved ? ', proved' : ''}`
    const when = phase === checker.phase ? phase : `${phase} → ${checker.phase}`
    wrong.push({ at: new Date().toISOString(), phase: when, name: owner, type, resolver: resolver.name, said })
  }

  async function run(resolver: Resolver): Promise<void> {
    while (!stopped) {
      for (const one of questions) {
        if (stopped) return
        await ask(resolver, one)
        await sleep(pauseMs)
      }
    }
  }
  const running = resolvers.map(run)
  return Object.assign(checker, {
    async stop() {
      stopped = true
      await Promise.all(running)
    },
  })
}
