// The ACME account: registers on first use, and again if the authority has lost the account.
import { bindExternalAccount, type ExternalAccount } from './acme-jws.ts'
import { AcmeProblem } from './acme-problem.ts'
import { type AcmeSession, invalidResponse } from './acme-session.ts'
import type { Reply } from './acme-transport.ts'

export type AccountOptions = {
  session: AcmeSession
  /** The account URL (kid); empty until it is registered. */
  url: string
  email: string | null
  eab: ExternalAccount | null
  /** Stores the account URL. */
  save(url: string): Promise<void>
}

export type AcmeAccountClient = {
  /** Sends a request signed by the account. A null payload reads. */
  post(url: string, payload: object | null): Promise<Reply>
}

export function createAccountClient({ session, url, email, eab, save }: AccountOptions): AcmeAccountClient {
  let kid = url

  /** If the account already exists, the authority returns its URL and changes nothing. */
  async function register(): Promise<void> {
    const { newAccount } = await session.directory()
    const { headers } = await session.post(newAccount, null, {
      // The operator agrees to the terms by configuring the authority.
      termsOfServiceAgreed: true,
      ...(email && { contact: [`mailto:${email}`] }),
      ...(eab && { externalAccountBinding: bindExternalAccount(session.key, newAccount, eab) }),
    })
    if (!headers.location) throw invalidResponse('it lacks the URL of the account')
    kid = headers.location
    await save(kid)
  }

  return {
    async post(url, payload) {
      if (!kid) await register()
      try {
        return await session.post(url, kid, payload)
      } catch (error) {
        if (!(error instanceof AcmeProblem) || error.code !== 'accountDoesNotExist') throw error
        await register()
        return session.post(url, kid, payload)
      }
    },
  }
}
