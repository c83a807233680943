// Sends one query to one DNS server: over UDP, then over TCP if the answer doesn't fit. Limited in time, never cached.
import { randomInt } from 'node:crypto'
import { type ExchangeFailure, exchangeOverTcp, exchangeOverUdp, type Server } from '../../dns/packet/exchange.ts'
import { rcodes } from '../../dns/packet/numbers.ts'
import { type Answer, decodeAnswer, encodeQuery, type Type } from './answer.ts'

/** Why a server gave no answer. None of these says anything about the queried name. */
export type Failure = 'timeout' | 'unreachable' | 'malformed' | 'servfail' | 'refused' | 'lame' | 'unresolved'

export type Endpoint = Server

export type AskOptions = {
  recursive?: boolean
  /** Ends the whole check when the job is lost or the worker stops. Promises then reject. */
  signal: AbortSignal
  /** When the check must end, by `performance.now()`. */
  deadlineMs: number
}

// Sent twice, because datagrams may be lost. An authoritative server that takes longer counts as down.
const answerTimeoutMs = 2_000
const resendMs = 700
// A resolver may have to query half a dozen servers first.
const recursiveTimeoutMs = 4_000

/** The timeout of one exchange; 0 when the check is over. */
function remainingMs({ deadlineMs, recursive }: AskOptions): number {
  return Math.max(0, Math.min(recursive ? recursiveTimeoutMs : answerTimeoutMs, deadlineMs - performance.now()))
}

function read(packet: Buffer | ExchangeFailure, query: Buffer): Answer | Failure {
  // A closed port and a host that is down are treated alike.
  if (typeof packet === 'string') return packet === 'refused' ? 'unreachable' : packet
  try {
    return decodeAnswer(packet, query) ?? 'malformed'
  } catch {
    return 'malformed'
  }
}

async function askOver(
  exchange: typeof exchangeOverUdp,
  endpoint: Endpoint,
  query: Buffer,
  options: AskOptions,
): Promise<Answer | Failure> {
  const { signal } = options
  signal.throwIfAborted()
  const timeoutMs = remainingMs(options)
  if (timeoutMs === 0) return 'timeout'
  return read(await exchange(endpoint, query, { timeoutMs, resendMs, signal }), query)
}

/** Never rejects because of a server. An answer is NOERROR or NXDOMAIN. */
export async function ask(
  endpoint: Endpoint,
  name: string,
  type: Type,
  options: AskOptions,
): Promise<Answer | Failure> {
  const query = encodeQuery(randomInt(0x10000), name, type, options.recursive ?? false)
  if (!query) return 'malformed'
  let result = await askOver(exchangeOverUdp, endpoint, query, options)
  if (typeof result !== 'string' && result.truncated) {
    result = await askOver(exchangeOverTcp, endpoint, query, options)
  }
  if (typeof result === 'string') return result
  if (result.code === rcodes.NOERROR || result.code === rcodes.NXDOMAIN) return result.truncated ? 'malformed' : result
  return result.code === rcodes.SERVFAIL ? 'servfail' : 'refused'
}
