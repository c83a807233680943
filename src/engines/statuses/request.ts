// Sends a POST to a repository host: no private addresses, no redirects, limited in time and size.
import http from 'node:http'
import https from 'node:https'
import { AddressRefused, checkedLookup, type Reach } from '../../platform/http/checked-lookup.ts'
import { rejectUnexpectedResponses } from '../../platform/http/unexpected-responses.ts'
import { type TargetRules, targetRefusal } from '../../services/webhooks/index.ts'

const timeoutMs = 10_000
const maxResponseBytes = 16 * 1024

export type HostAnswer = { status: number; headers: http.IncomingHttpHeaders; text: string }

/** The URL isn't allowed, so retries are pointless. */
export class RefusedTarget extends Error {}

export type PostOptions = {
  headers: Record<string, string>
  body: object
  rules: TargetRules
  reach: Reach
  signal: AbortSignal
}

export async function postJson(url: string, { headers, body, rules, reach, signal }: PostOptions): Promise<HostAnswer> {
  // Checked again, because the platform's rules may have changed since the URL was stored.
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
      lookup: checkedLookup(reach),
      signal: AbortSignal.any([signal, deadline]),
    })
    rejectUnexpectedResponses(sent, reject)
    sent.on('error', (error) => {
      if (deadline.aborted) return reject(new Error(`no answer within ${timeoutMs / 1000} s`))
      reject(error instanceof AddressRefused ? new RefusedTarget(error.message) : error)
    })
    sent.on('response', (response) => {
      const chunks: Buffer[] = []
      let bytes = 0
      const settle = () =>
        resolve({ status: response.statusCode!, headers: response.headers, text: Buffer.concat(chunks).toString() })
      response.on('data', (chunk: Buffer) => {
        chunks.push(chunk)
        bytes += chunk.length
        if (bytes < maxResponseBytes) return
        settle()
        response.destroy()
      })
      response.on('end', settle)
      response.on('error', reject)
    })
    sent.end(payload)
  })
}
