// One POST to a repository host: no private address, no redirect, a deadline, and no more of the answer than is read.
import { lookup as resolve } from 'node:dns'
import http from 'node:http'
import https from 'node:https'
import type { LookupFunction } from 'node:net'
import { isPublicAddress, type TargetRules, targetRefusal } from '../../services/webhook-targets.ts'

const timeoutMs = 10_000
const maxAnswerBytes = 16 * 1024

export type HostAnswer = { status: number; headers: http.IncomingHttpHeaders; text: string }

/** The address may not be called, whatever answers there: trying again changes nothing. */
export class RefusedTarget extends Error {}

/** Looks a name up and keeps its public addresses; the connection goes to what was checked, not to a second look-up. */
export function publicLookup(rules: TargetRules, look: typeof resolve = resolve): LookupFunction {
  return (hostname, options, callback) => {
    look(hostname, { ...options, all: true }, (error, found) => {
      if (error) return callback(error, [])
      const allowed = rules.webhookAllowPrivate ? found : found.filter(({ address }) => isPublicAddress(address))
      const [first] = allowed
      if (!first) return callback(new RefusedTarget(`${hostname} has no public address`), [])
      if (options.all) callback(null, allowed)
      else callback(null, first.address, first.family)
    })
  }
}

export async function postJson(
  url: string,
  headers: Record<string, string>,
  body: object,
  rules: TargetRules,
  signal: AbortSignal,
): Promise<HostAnswer> {
  // Said when the address was stored, and again here: the rules of the platform may be others by now.
  const refusal = targetRefusal(url, rules)
  if (refusal) throw new RefusedTarget(`the address ${refusal}`)
  const payload = Buffer.from(JSON.stringify(body))
  const { request } = url.startsWith('https:') ? https : http
  return new Promise((resolve, reject) => {
    const deadline = AbortSignal.timeout(timeoutMs)
    const sent = request(url, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json', 'content-length': payload.length },
      agent: false,
      lookup: publicLookup(rules),
      signal: AbortSignal.any([signal, deadline]),
    })
    sent.on('error', (error) => {
      if (deadline.aborted) return reject(new Error(`no answer within ${timeoutMs / 1000} s`))
      reject(error)
    })
    sent.on('response', (response) => {
      const chunks: Buffer[] = []
      let bytes = 0
      const settle = () =>
        resolve({ status: response.statusCode!, headers: response.headers, text: Buffer.concat(chunks).toString() })
      response.on('data', (chunk: Buffer) => {
        chunks.push(chunk)
        bytes += chunk.length
        if (bytes < maxAnswerBytes) return
        settle()
        response.destroy()
      })
      response.on('end', settle)
      response.on('error', reject)
    })
    sent.end(payload)
  })
}
