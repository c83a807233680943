// Queries this machine's DNS servers for a sandbox. A wrong or late packet only affects its own question.
import { randomInt } from 'node:crypto'
import { getServers } from 'node:dns'
import { isIP } from 'node:net'
import { exchangeOverTcp, exchangeOverUdp } from '../../dns/packet/exchange.ts'
import { encodeQuery, isTruncated, rcodeOf } from '../../dns/packet/message.ts'
import { rcodes } from '../../dns/packet/numbers.ts'
import type { Question } from './packets.ts'

export type Upstream = { address: string; port: number }

/** For all attempts at one question. Clients retry after five seconds. */
const DEADLINE_MS = 5000
const TRY_MS = 1500

/** Each is `address[:port]`, with brackets around an IPv6 address with a port. If empty, uses the system's servers. */
export function readServers(configured: readonly string[]): Upstream[] {
  return (configured.length > 0 ? configured : getServers()).flatMap((text) => {
    if (isIP(text)) return [{ address: text, port: 53 }]
    const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d{1,5}))?$/.exec(text) ?? []
    const address = bracketed ?? plain ?? ''
    return isIP(address) ? [{ address, port: Number(digits ?? 53) }] : []
  })
}

/** Returns the first valid answer unchanged; undefined if none arrives in time. Never rejects. */
export async function askUpstream(servers: Upstream[], question: Question): Promise<Buffer | undefined> {
  const deadline = Date.now() + DEADLINE_MS
  let failure: Buffer | undefined
  // Two rounds, because packets may be lost.
  for (const server of [...servers, ...servers]) {
    const leftMs = Math.min(TRY_MS, deadline - Date.now())
    if (leftMs <= 0) break
    const answer = await askServer(server, question, leftMs)
    if (answer === undefined) continue
    if (rcodeOf(answer) !== rcodes.SERVFAIL && rcodeOf(answer) !== rcodes.REFUSED) return answer
    if (failure !== undefined) break
    failure = answer
  }
  return failure
}

async function askServer(server: Upstream, question: Question, timeoutMs: number): Promise<Buffer | undefined> {
  // Forwards only the question, because the client's EDNS options aren't meant for our upstream.
  const query = encodeQuery(question.bytes, randomInt(0x10000), true)
  const target = { host: server.address, port: server.port }
  let answer = await exchangeOverUdp(target, query, { timeoutMs })
  if (typeof answer !== 'string' && isTruncated(answer)) answer = await exchangeOverTcp(target, query, { timeoutMs })
  return typeof answer === 'string' ? undefined : answer
}
