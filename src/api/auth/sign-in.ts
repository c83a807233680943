// The context to sign in without a link: passkey, password with a one-time password, identity provider.
import { isIP } from 'node:net'
import { oidcRoutes } from './oidc.ts'
import { passkeyRoutes } from './passkeys.ts'
import { passwordRoutes } from './password.ts'
import type { AuthPlugin } from './plugin.ts'
import { totpRoutes } from './totp.ts'

export const signInRoutes: AuthPlugin = async (app, { deps, context }) => {
  const { config } = deps

  app.get('/auth/options', async () => ({
    password: true,
    // Browsers don't bind passkeys to IP addresses.
    passkey: isIP(context.party.id.replace(/^\[|\]$/g, '')) === 0,
    oidc: config.oidc && { name: config.oidc.name },
    mail: config.mail !== null,
  }))

  for (const routes of [passkeyRoutes, passwordRoutes, totpRoutes, oidcRoutes]) {
    await app.register(routes, { deps, context })
  }
}
