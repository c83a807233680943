// Signs users in through an OpenID Connect provider: code flow with PKCE, state and nonce.
import type * as oidc from 'openid-client'
import { Fault } from '../errors.ts'

export type IdentityProviderConfig = { issuer: string; clientId: string; clientSecret: string; name: string }

/** Values that are sent along and must come back. */
export type Checks = { state: string; nonce: string; verifier: string }

export type Identity = {
  issuer: string
  subject: string
  /** Null unless the provider says that it has verified the email. */
  verifiedEmail: string | null
  name: string | null
}

export type IdentityProvider = {
  /** The URL to redirect the browser to, and the values to remember. */
  begin(): Promise<{ url: string; checks: Checks }>
  /** The identity of the user who came back with these parameters. */
  finish(query: URLSearchParams, checks: Checks): Promise<Identity>
}

const timeoutSeconds = 5

type Library = typeof oidc

/** The method that the provider prefers; HTTP Basic if it doesn't say. */
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

  async function load() {
    // Loaded at the first sign-in, so that other processes save the memory.
    const oidc = await import('openid-client')
    // Only a provider on this machine may be contacted without TLS; src/config.ts refuses all others.
    const insecure = issuer.startsWith('http:') ? [oidc.allowInsecureRequests] : []
    const options = { timeout: timeoutSeconds, execute: [oidc.enableNonRepudiationChecks, ...insecure] }
    const authenticate = authentication(oidc, clientSecret)
    return { oidc, config: await oidc.discovery(new URL(issuer), clientId, undefined, authenticate, options) }
  }

  /** Discovers the provider once; retries after a failure. */
  function discover() {
    discovered ??= load().catch((cause) => {
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
        const needsUserInfo = claims.email === undefined && config.serverMetadata().userinfo_endpoint !== undefined
        const more = needsUserInfo ? await oidc.fetchUserInfo(config, tokens.access_token, claims.sub) : {}
        return identityOf({ ...claims, ...more, iss: claims.iss, sub: claims.sub })
      } catch (cause) {
        throw new Fault('sign_in_failed', undefined, { cause })
      }
    },
  }
}

function identityOf(claims: Record<string, unknown> & { iss: string; sub: string }): Identity {
  const { iss: issuer, sub: subject, email, email_verified: verified, name } = claims
  // Some providers send the value as a string.
  const isVerified = verified === true || verified === 'true'
  return {
    issuer,
    subject,
    verifiedEmail: isVerified && typeof email === 'string' ? email : null,
    name: typeof name === 'string' && name.trim() !== '' ? name.trim() : null,
  }
}
