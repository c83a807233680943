// Talks ACME (RFC 8555, RFC 9773) for the rest of the engine, by way of the acme-client package, which is known here alone.
// The package signs and counts nonces; its own transport sleeps and retries behind one's back, forgets Retry-After and
// turns every refusal into a sentence, so it gets ours.
import acme from 'acme-client'
import { AcmeProblem, type Reply, readRetryAfter, type Transport, Unreachable } from './acme-transport.ts'

export type AcmeOrderState = {
  url: string
  status: 'pending' | 'ready' | 'processing' | 'valid' | 'invalid'
  authorizations: string[]
  finalize: string
  certificate?: string
  error?: object
  retryAt: Date | null
}

export type AcmeChallenge = { type: string; url: string; token: string; status: string; error?: object }

export type Authorization = {
  /** As it was ordered, with its star. */
  hostname: string
  status: 'pending' | 'valid' | 'invalid' | 'deactivated' | 'expired' | 'revoked'
  challenges: AcmeChallenge[]
  retryAt: Date | null
}

export type RenewalInfo = { start: Date; end: Date; retryAt: Date | null }

export type AcmeClient = {
  newOrder(names: string[], replaces: string | null): Promise<AcmeOrderState>
  readOrder(url: string): Promise<AcmeOrderState>
  readAuthorization(url: string): Promise<Authorization>
  /** What http-01 serves; for dns-01 its digest. */
  keyAuthorization(challenge: AcmeChallenge): Promise<string>
  answer(challenge: AcmeChallenge): Promise<void>
  /** Asks for the signature under the names; `key` is the private key of the certificate, in PEM. */
  finalize(order: AcmeOrderState, names: string[], key: string): Promise<void>
  /** PEM, the certificate itself first. */
  download(order: AcmeOrderState): Promise<string>
  /** When the authority wants a certificate renewed; null from one that does not tell. */
  renewalInfo(certificateId: string): Promise<RenewalInfo | null>
  hasRenewalInfo(): Promise<boolean>
}

export type Account = {
  url: string
  /** PEM. */
  key: string
  /** Keeps the address under which the authority knows the account. */
  save(url: string): Promise<void>
}

export type AcmeOptions = {
  directoryUrl: string
  email: string | null
  eab: { kid: string; key: string } | null
  transport: Transport
  account: Account
  signal: AbortSignal
}

// What the package does not declare of itself.
type Internals = {
  http: {
    maxBadNonceRetries: number
    request(url: string, method: string, options?: { data?: unknown }): Promise<Reply>
    getDirectory(): Promise<Record<string, unknown>>
  }
  api: {
    accountUrl: string | null
    createAccount(account: object): Promise<Reply>
    apiRequest(url: string, payload: unknown, statuses: number[]): Promise<Reply>
  }
}

/** The package complains about answers that lack something by plain errors. Those are the authority's fault, not ours. */
async function understood<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if ((error as Error)?.constructor !== Error) throw error
    throw new Unreachable(`The certificate authority gave an answer that cannot be used: ${(error as Error).message}.`)
  }
}

export function createAcmeClient(options: AcmeOptions): AcmeClient {
  const { directoryUrl, email, eab, transport, account, signal } = options
  const client = new acme.Client({
    directoryUrl,
    accountKey: account.key,
    ...(account.url && { accountUrl: account.url }),
    ...(eab && { externalAccountBinding: { kid: eab.kid, hmacKey: eab.key } }),
  })
  const { http, api } = client as unknown as Internals
  http.request = (url, method, { data } = {}) => transport.request(url, method, data, signal)
  // Each refusal brings a fresh nonce, so asking again costs a round trip and giving up costs the order.
  http.maxBadNonceRetries = 12

  async function register(): Promise<void> {
    // Whoever names an authority in the configuration has read its terms. Not by the method of the client, which follows
    // up with an update where the account is there already, and that is refused by some.
    const contact = email ? { contact: [`mailto:${email}`] } : {}
    await understood(() => api.createAccount({ termsOfServiceAgreed: true, ...contact }))
    if (api.accountUrl) await account.save(api.accountUrl)
  }

  /** Makes the account where there is none yet, and again where the authority has lost it. */
  async function withAccount<T>(work: () => Promise<T>): Promise<T> {
    if (!api.accountUrl) await register()
    try {
      return await understood(work)
    } catch (error) {
      if (!(error instanceof AcmeProblem) || error.code !== 'accountDoesNotExist') throw error
      api.accountUrl = null
      await register()
      return understood(work)
    }
  }

  async function read<T>(url: string): Promise<T & { retryAt: Date | null }> {
    const { data, headers } = await withAccount(() => api.apiRequest(url, null, [200]))
    return { ...(data as T), retryAt: readRetryAfter(headers['retry-after']) }
  }

  async function renewalUrl(): Promise<string | null> {
    const { renewalInfo } = await understood(() => http.getDirectory())
    return typeof renewalInfo === 'string' ? renewalInfo : null
  }

  return {
    async newOrder(names, replaces) {
      const identifiers = names.map((value) => ({ type: 'dns', value }))
      const make = (more: object) => withAccount(() => client.createOrder({ identifiers, ...more }))
      const made = await make(replaces ? { replaces } : {}).catch((error) => {
        // Renewed before, with an answer that never came back; what is wanted is a certificate all the same.
        if (!(error instanceof AcmeProblem) || error.code !== 'alreadyReplaced') throw error
        return make({})
      })
      return { ...made, retryAt: null }
    },
    async readOrder(url) {
      return { ...(await read<Omit<AcmeOrderState, 'retryAt'>>(url)), url }
    },
    async readAuthorization(url) {
      const found = await read<Omit<Authorization, 'hostname'> & { identifier: { value: string }; wildcard?: boolean }>(
        url,
      )
      return { ...found, hostname: found.wildcard ? `*.${found.identifier.value}` : found.identifier.value }
    },
    keyAuthorization: (challenge) => client.getChallengeKeyAuthorization(challenge as never),
    async answer(challenge) {
      await withAccount(() => client.completeChallenge(challenge as never))
    },
    async finalize(order, names, key) {
      // Without a common name, which holds 64 characters only and means nothing beside the alternative names.
      const [, csr] = await acme.crypto.createCsr({ altNames: [...names] }, key)
      await withAccount(() => client.finalizeOrder(order as never, csr))
    },
    download: (order) => withAccount(() => client.getCertificate(order as never)),
    hasRenewalInfo: async () => (await renewalUrl()) !== null,
    async renewalInfo(certificateId) {
      const base = await renewalUrl()
      if (!base) return null
      const { data, headers } = await transport.request(
        `${base.replace(/\/$/, '')}/${certificateId}`,
        'get',
        undefined,
        signal,
      )
      const { suggestedWindow } = (data ?? {}) as { suggestedWindow?: { start?: string; end?: string } }
      const [start, end] = [new Date(suggestedWindow?.start ?? ''), new Date(suggestedWindow?.end ?? '')]
      // Section 4.2: a window that ends before it starts is to be treated like no answer.
      if (!(start.getTime() < end.getTime())) throw new Unreachable('The suggested window is none.')
      return { start, end, retryAt: readRetryAfter(headers['retry-after']) }
    },
  }
}
