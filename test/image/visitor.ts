// Asks the installation from outside, through the ports that compose publishes.
import { request } from 'node:https'
import { exchangeOverTcp, exchangeOverUdp } from '../../src/dns/packet/exchange.ts'
import { encodeQuestion, rcodeOf, readRecord } from '../../src/dns/packet/message.ts'
import { typeNumbers } from '../../src/dns/packet/numbers.ts'

export type Answer = { status: number; body: string }

export type Visit = { address: string; port: number; host: string; path?: string; method?: string } & {
  token?: string
  body?: object
}

/** Over HTTPS; the certificate is one of the development CA. */
export function visit({ address, port, host, path = '/', method = 'GET', token, body }: Visit): Promise<Answer> {
  const headers = {
    host,
    ...(token && { authorization: `Bearer ${token}` }),
    ...(body && { 'content-type': 'application/json' }),
  }
  return new Promise((resolve, reject) => {
    const options = {
      host: address,
      port,
      path,
      method,
      headers,
      servername: host.split(':')[0],
      agent: false as const,
    }
    const sent = request({ ...options, rejectUnauthorized: false, timeout: 90_000 }, async (response) => {
      const body = Buffer.concat(await response.toArray()).toString()
      resolve({ status: response.statusCode!, body })
    })
    sent.on('timeout', () => sent.destroy(new Error('no answer')))
    sent.on('error', reject)
    sent.end(body && JSON.stringify(body))
  })
}

/** The address in the first answer, or why there is none. */
export async function ask(server: string, transport: 'udp' | 'tcp', name: string): Promise<string> {
  const query = encodeQuestion(name, { id: 4711, type: typeNumbers.A, recursive: false })!
  const exchange = transport === 'udp' ? exchangeOverUdp : exchangeOverTcp
  const answer = await exchange({ host: server, port: 53 }, query, { timeoutMs: 5_000 })
  if (typeof answer === 'string') return answer
  if (answer.readUInt16BE(6) === 0) return `no answer, code ${rcodeOf(answer)}`
  const record = readRecord(answer, query.length)!
  return [...answer.subarray(record.dataStart, record.end)].join('.')
}
