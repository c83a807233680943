// The identity provider that people may sign in with.
import { Type } from '@sinclair/typebox'
import { type Refuse, Text, type Values } from './variables.ts'

export const oidcVariables = {
  OIDC_ISSUER: Text(),
  OIDC_CLIENT_ID: Text(),
  OIDC_CLIENT_SECRET: Text(),
  OIDC_NAME: Text(),
  OIDC_ALLOW_SIGNUP: Type.Boolean({ default: false }),
}

export function oidcSettings(env: Values<typeof oidcVariables>, production: boolean, refuse: Refuse) {
  const required = [env.OIDC_ISSUER, env.OIDC_CLIENT_ID, env.OIDC_CLIENT_SECRET]
  if (required.some((value) => value) && !required.every((value) => value)) {
    refuse('OIDC_ISSUER, OIDC_CLIENT_ID and OIDC_CLIENT_SECRET go together.')
  }
  if (env.OIDC_ISSUER && !isIssuer(env.OIDC_ISSUER, production)) {
    refuse('OIDC_ISSUER must start with https://, and have neither query nor fragment.')
  }
  return {
    /** Null: people sign in with passwords and passkeys only. */
    oidc: env.OIDC_ISSUER
      ? {
          issuer: env.OIDC_ISSUER,
          clientId: env.OIDC_CLIENT_ID,
          clientSecret: env.OIDC_CLIENT_SECRET,
          /** The text of the sign-in button. */
          name: env.OIDC_NAME || (URL.parse(env.OIDC_ISSUER)?.hostname ?? ''),
          /** Whether people may sign up without an invitation. */
          allowSignup: env.OIDC_ALLOW_SIGNUP,
        }
      : null,
  }
}

/** Plain HTTP is safe only if the provider runs on this machine. */
function isIssuer(text: string, production: boolean): boolean {
  const url = URL.parse(text)
  if (!url || url.search || url.hash) return false
  const isLocal = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname)
  return url.protocol === 'https:' || (url.protocol === 'http:' && !production && isLocal)
}
