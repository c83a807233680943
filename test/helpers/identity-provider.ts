// A real OpenID Connect provider on loopback (npm's oidc-provider) that signs in a person named by the test, without a page.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Provider } from 'oidc-provider'

export type Claims = { email?: string; email_verified?: boolean; name?: string }

export type TestProvider = {
  issuer: string
  client: { id: string; secret: string }
  /** Sets who is signed in there. */
  signInAs(subject: string, claims: Claims): void
  /** Acts as this person's browser there: returns the URL that it redirects to. */
  visit(url: string, subject: string, claims: Claims): Promise<string>
  stop(): Promise<void>
}

export async function startProvider(redirectUri: string): Promise<TestProvider> {
  const people = new Map<string, Claims>()
  let current = ''
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const client = { id: 'berth', secret: 'a secret of the client' }
  const provider = new Provider(issuer, {
    clients: [{ client_id: client.id, client_secret: client.secret, redirect_uris: [redirectUri] }],
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
    cookies: { keys: ['a key'] },
    ttl: { AccessToken: 60, AuthorizationCode: 60, Grant: 60, IdToken: 60, Interaction: 60, Session: 60 },
    pkce: { required: () => true },
    features: { devInteractions: { enabled: false } },
    findAccount: (_context, id) => ({ accountId: id, claims: async () => ({ sub: id, ...people.get(id) }) }),
    interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
    async loadExistingGrant({ oidc }) {
      const grant = new provider.Grant({ clientId: oidc.client!.clientId, accountId: oidc.session!.accountId! })
      grant.addOIDCScope('openid email profile')
      await grant.save()
      return grant
    },
  })
  const serve = provider.callback()
  server.on('request', (request, response) => {
    if (!request.url!.startsWith('/interaction/')) return void serve(request, response)
    void provider.interactionFinished(request, response, { login: { accountId: current } })
  })

  function signInAs(subject: string, claims: Claims): void {
    people.set(subject, claims)
    current = subject
  }

  return {
    issuer,
    client,
    signInAs,
    async visit(url, subject, claims) {
      signInAs(subject, claims)
      const cookies = new Map<string, string>()
      for (let next = url; ; ) {
        const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
        const answer = await fetch(next, { redirect: 'manual', headers: { cookie } })
        for (const one of answer.headers.getSetCookie()) {
          const [name = '', value = ''] = one.split(';', 1)[0]!.split('=')
          cookies.set(name, value)
        }
        const location = answer.headers.get('location')
        if (!location) throw new Error(`the provider answered ${answer.status}: ${await answer.text()}`)
        next = new URL(location, issuer).href
        if (next.startsWith(redirectUri)) return next
      }
    },
    stop: () => new Promise((resolve) => void server.close(() => resolve()).closeAllConnections()),
  }
}
