// Another service that knows who somebody is, by OpenID Connect: code flow with PKCE, state and nonce.
import type * as oidc from 'openid-client'
import { Fault } from '../errors.ts'

export type IdentityProviderConfig = { issuer: string; clientId: string; clientSecret: string; name: string }

/** What is sent along, and must come back. */
export type Checks = { state: string; nonce: string; verifier: string }

export type Identity = {
  issuer: string
  subject: string
  /** Null unless the provider says that the address is the person's own. */
  verifiedEmail: string | null
  name: string | null
}

export type IdentityProvider = {
  /** Where the browser is sent, and what to remember. */
  begin(): Promise<{ url: string; checks: Checks }>
  /** Who came back with these parameters. */
  finish(query: URLSearchParams, checks: Checks): Promise<Identity>
}

const timeoutSeconds = 5

type Library = typeof oidc

/** As the provider wants it; HTTP's own way where it does not say. */
function authentication({ ClientSecretBasic, ClientSecretPost }: Library, secret: string): oidc.ClientAuth {
  const [basic, post] = [ClientSecretBasic(secret), ClientSecretPost(secret)]
  return (server, ...rest) => {
    const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
    return (methods.includes('client_secret_basic') ? basic : post)(server, ...rest)
  }
}

export function createIdentityProvider(
  { issuer, clientId, clientSecret }: IdentityProviderConfig,
  redirectUri: string,
): IdentityProvider {
  let discovered: Promise<{ oidc: Library; config: oidc.Configuration }> | null = null

  async function ask() {
    // Loaded at the first sign-in: a process without any does without its memory.
    const oidc = await import('openid-client')
    // Only a provider on this machine may be asked without TLS; src/config.ts refuses all others.
    const insecure = issuer.startsWith('http:') ? [oidc.allowInsecureRequests] : []
    const options = { timeout: timeoutSeconds, execute: [oidc.enableNonRepudiationChecks, ...insecure] }
    const authenticate = authentication(oidc, clientSecret)
    return { oidc, config: await oidc.discovery(new URL(issuer), clientId, undefined, authenticate, options) }
  }

  /** Asked once; again after a failure. */
  function discover() {
    discovered ??= ask().catch((cause) => {
      discovered = null
      throw new Fault('identity_provider_unavailable', undefined, { cause, retryAfterSeconds: 10 })
    })
    return discovered
  }

  return {
    async begin() {
      const { oidc, config } = await discover()
      const checks = {
        state: oidc.randomState(),
        nonce: oidc.randomNonce(),
        verifier: oidc.randomPKCECodeVerifier(),
      }
      const url = oidc.buildAuthorizationUrl(config, {
        redirect_uri: redirectUri,
        scope: 'openid email profile',
        state: checks.state,
        nonce: checks.nonce,
        code_challenge: await oidc.calculatePKCECodeChallenge(checks.verifier),
        code_challenge_method: 'S256',
      })
      return { url: url.href, checks }
    },
    async finish(query, { state, nonce, verifier }) {
      const { oidc, config } = await discover()
      try {
        const tokens = await oidc.authorizationCodeGrant(config, new URL(`${redirectUri}?${query}`), {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: verifier,
        })
        const claims = tokens.claims()!
        const asks = claims.email === undefined && config.serverMetadata().userinfo_endpoint !== undefined
        const more = asks ? await oidc.fetchUserInfo(config, tokens.access_token, claims.sub) : {}
        return identityOf({ ...claims, ...more, iss: claims.iss, sub: claims.sub })
      } catch (cause) {
        throw new Fault('sign_in_failed', undefined, { cause })
      }
    },
  }
}

function identityOf(claims: Record<string, unknown> & { iss: string; sub: string }): Identity {
  const { iss: issuer, sub: subject, email, email_verified: verified, name } = claims
  // Some providers write the value as text.
  const isVerified = verified === true || verified === 'true'
  return {
    issuer,
    subject,
    verifiedEmail: isVerified && typeof email === 'string' ? email : null,
    name: typeof name === 'string' && name.trim() !== '' ? name.trim() : null,
  }
}
