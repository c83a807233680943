// A client for the orders, authorizations, certificates and renewal windows of an ACME server (RFC 8555, RFC 9773).
import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { createAccountClient } from './acme-account.ts'
import { type ExternalAccount, keyAuthorization, readAccountKey } from './acme-jws.ts'
import { AcmeProblem, readRetryAfter, Unreachable } from './acme-problem.ts'
import { createSession, invalidResponse, validate } from './acme-session.ts'
import type { Transport } from './acme-transport.ts'
import { newSigningRequest } from './keys.ts'

const oneOf = <T extends string>(...values: T[]) => Type.Union(values.map((value) => Type.Literal(value)))

const Order = Type.Object({
  status: oneOf('pending', 'ready', 'processing', 'valid', 'invalid'),
  authorizations: Type.Array(Type.String()),
  finalize: Type.String(),
  certificate: Type.Optional(Type.String()),
  error: Type.Optional(Type.Unknown()),
})

const AuthorizationAnswer = Type.Object({
  identifier: Type.Object({ value: Type.String() }),
  wildcard: Type.Optional(Type.Boolean()),
  status: oneOf('pending', 'valid', 'invalid', 'deactivated', 'expired', 'revoked'),
  challenges: Type.Array(
    Type.Object({
      type: Type.String(),
      url: Type.String(),
      status: Type.String(),
      token: Type.Optional(Type.String()),
      error: Type.Optional(Type.Unknown()),
    }),
  ),
})

const RenewalInfoAnswer = Type.Object({ suggestedWindow: Type.Object({ start: Type.String(), end: Type.String() }) })

export type AcmeOrderState = Static<typeof Order> & { url: string; retryAt: Date | null }

type AuthorizationState = Static<typeof AuthorizationAnswer>

export type AcmeChallenge = AuthorizationState['challenges'][number] & { token: string }

export type Authorization = {
  /** The name as ordered, with its wildcard. */
  hostname: string
  status: AuthorizationState['status']
  /** Only the supported challenges, which have a token. */
  challenges: AcmeChallenge[]
}

export type RenewalInfo = { start: Date; end: Date; retryAt: Date | null }

export type AcmeClient = {
  newOrder(names: string[], replaces: string | null): Promise<AcmeOrderState>
  readOrder(url: string): Promise<AcmeOrderState>
  readAuthorization(url: string): Promise<Authorization>
  /** The content for http-01, or its digest for dns-01. */
  keyAuthorization(challenge: AcmeChallenge): string
  answer(challenge: AcmeChallenge): Promise<void>
  /** Sends a signing request for the names. `key` is the certificate's private key in PEM. */
  finalize(order: AcmeOrderState, names: string[], key: string): Promise<void>
  /** Returns PEM, starting with the certificate itself. */
  download(order: AcmeOrderState): Promise<string>
  /** When the authority wants a certificate renewed; null if it does not support this. */
  renewalInfo(certificateId: string): Promise<RenewalInfo | null>
  hasRenewalInfo(): Promise<boolean>
}

export type AcmeOptions = {
  directoryUrl: string
  email: string | null
  eab: ExternalAccount | null
  transport: Transport
  account: {
    url: string
    /** PEM. */
    key: string
    /** Stores the account URL. */
    save(url: string): Promise<void>
  }
  signal: AbortSignal
}

export function createAcmeClient({ directoryUrl, email, eab, transport, account, signal }: AcmeOptions): AcmeClient {
  const key = readAccountKey(account.key)
  const session = createSession({ directoryUrl, key, transport, signal })
  const { post } = createAccountClient({ session, url: account.url, email, eab, save: account.save })

  async function read<T extends TSchema>(schema: T, url: string): Promise<Static<T> & { retryAt: Date | null }> {
    const { data, headers } = await post(url, null)
    return { ...(validate(schema, data) as object), retryAt: readRetryAfter(headers['retry-after']) } as never
  }

  async function makeOrder(payload: object): Promise<AcmeOrderState> {
    const { newOrder } = await session.directory()
    const { data, headers } = await post(newOrder, payload)
    if (!headers.location) throw invalidResponse('it lacks the URL of the order')
    return { ...validate(Order, data), url: headers.location, retryAt: null }
  }

  return {
    async newOrder(names, replaces) {
      const identifiers = names.map((value) => ({ type: 'dns', value }))
      if (!replaces) return makeOrder({ identifiers })
      return makeOrder({ identifiers, replaces }).catch((error) => {
        // An earlier order replaced it, but its response was lost. A certificate is still needed.
        if (!(error instanceof AcmeProblem) || error.code !== 'alreadyReplaced') throw error
        return makeOrder({ identifiers })
      })
    },
    readOrder: async (url) => ({ ...(await read(Order, url)), url }),
    async readAuthorization(url) {
      const { identifier, wildcard, status, challenges } = await read(AuthorizationAnswer, url)
      const known = challenges.filter((challenge): challenge is AcmeChallenge => challenge.token !== undefined)
      return { status, challenges: known, hostname: wildcard ? `*.${identifier.value}` : identifier.value }
    },
    keyAuthorization: ({ type, token }) => keyAuthorization(key, type, token),
    async answer({ url }) {
      await post(url, {})
    },
    async finalize(order, names, key) {
      await post(order.finalize, { csr: (await newSigningRequest(names, key)).toString('base64url') })
    },
    async download({ certificate }) {
      if (!certificate) throw invalidResponse('it lacks the URL of the certificate')
      const { data } = await post(certificate, null)
      if (typeof data !== 'string') throw invalidResponse('it is not a certificate')
      return data
    },
    hasRenewalInfo: async () => (await session.directory()).renewalInfo !== undefined,
    async renewalInfo(certificateId) {
      const { renewalInfo } = await session.directory()
      if (!renewalInfo) return null
      const { data, headers } = await session.get(`${renewalInfo.replace(/\/$/, '')}/${certificateId}`)
      const { suggestedWindow } = validate(RenewalInfoAnswer, data)
      const [start, end] = [new Date(suggestedWindow.start), new Date(suggestedWindow.end)]
      // RFC 9773, section 4.2: a window that ends before it starts counts as no response.
      if (!(start.getTime() < end.getTime())) throw new Unreachable('The suggested renewal window is invalid.')
      return { start, end, retryAt: readRetryAfter(headers['retry-after']) }
    },
  }
}
