// The ways to sign in that are not links: passkeys, password with one-time passwords, an identity provider.
import { isIP } from 'node:net'
import { oidcRoutes } from './oidc.ts'
import { passkeyRoutes } from './passkeys.ts'
import { passwordRoutes } from './password.ts'
import type { AuthPlugin } from './plugin.ts'
import { totpRoutes } from './totp.ts'

export const signInRoutes: AuthPlugin = async (app, { deps, ways }) => {
  const { config } = deps

  app.get('/auth/options', async () => ({
    password: true,
    // Browsers bind no passkey to an address in figures.
    passkey: isIP(ways.party.id.replace(/^\[|\]$/g, '')) === 0,
    oidc: config.oidc && { name: config.oidc.name },
    mail: config.mail !== null,
  }))

  for (const routes of [passkeyRoutes, passwordRoutes, totpRoutes, oidcRoutes]) {
    await app.register(routes, { deps, ways })
  }
}
