// Sends requests to an ACME server: directory, nonces, signatures, and validation of responses.
import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { type AccountKey, signRequest } from './acme-jws.ts'
import { AcmeProblem, readRetryAfter, Unreachable } from './acme-problem.ts'
import type { Reply, Transport } from './acme-transport.ts'

const Directory = Type.Object({
  newNonce: Type.String(),
  newAccount: Type.String(),
  newOrder: Type.String(),
  /** RFC 9773; absent if the authority does not support renewal information. */
  renewalInfo: Type.Optional(Type.String()),
})
export type Directory = Static<typeof Directory>

export type AcmeSession = {
  key: AccountKey
  directory(): Promise<Directory>
  /** Sends an unsigned request. Throws AcmeProblem if refused. */
  get(url: string): Promise<Reply>
  /** Sends a signed request. `kid` is the account URL; null identifies it by its key. Throws AcmeProblem if refused. */
  post(url: string, kid: string | null, payload: object | null): Promise<Reply>
}

export type SessionOptions = { directoryUrl: string; key: AccountKey; transport: Transport; signal: AbortSignal }

// Each badNonce error comes with a fresh nonce, so a retry costs a round trip, while giving up costs the order.
const maxNonceRetries = 12

export function createSession({ directoryUrl, key, transport, signal }: SessionOptions): AcmeSession {
  let directory: Directory | null = null
  /** Unused nonces from earlier responses. */
  const nonces: string[] = []

  async function send(url: string, method: 'GET' | 'HEAD' | 'POST', body: object | null = null): Promise<Reply> {
    const reply = await transport.request(url, method, body, signal)
    const nonce = reply.headers['replay-nonce']
    if (nonce) nonces.push(nonce)
    return reply
  }

  async function get(url: string): Promise<Reply> {
    return requireSuccess(await send(url, 'GET'))
  }

  async function readDirectory(): Promise<Directory> {
    directory ??= validate(Directory, (await get(directoryUrl)).data)
    return directory
  }

  async function nextNonce(): Promise<string> {
    if (nonces.length === 0) requireSuccess(await send((await readDirectory()).newNonce, 'HEAD'))
    const nonce = nonces.pop()
    if (nonce === undefined) throw invalidResponse('it lacks a nonce')
    return nonce
  }

  async function post(url: string, kid: string | null, payload: object | null): Promise<Reply> {
    for (let retries = 0; ; retries++) {
      const reply = await send(url, 'POST', signRequest(key, { kid, nonce: await nextNonce(), url }, payload))
      const isBadNonce = reply.status === 400 && problemOf(reply).code === 'badNonce'
      if (!isBadNonce || retries === maxNonceRetries) return requireSuccess(reply)
    }
  }

  return { key, directory: readDirectory, get, post }
}

function problemOf({ status, headers, data }: Reply): AcmeProblem {
  return new AcmeProblem(typeof data === 'object' ? data : null, status, readRetryAfter(headers['retry-after']))
}

function requireSuccess(reply: Reply): Reply {
  if (reply.status >= 400) throw problemOf(reply)
  // ACME has no redirects.
  if (reply.status >= 300) throw invalidResponse(`its status is ${reply.status}`)
  return reply
}

/** Returns the data if it has the form that the RFC requires. */
export function validate<T extends TSchema>(schema: T, data: unknown): Static<T> {
  const error = Value.Errors(schema, data).First()
  if (error) throw invalidResponse(`${error.path || 'the body'}: ${error.message}`)
  return data as Static<T>
}

export function invalidResponse(reason: string): Unreachable {
  return new Unreachable(`The certificate authority sent an invalid response: ${reason}.`)
}
