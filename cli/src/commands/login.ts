// `berth login`, `logout` and `whoami`. Signs in by approval in the console, with a token, or with a CI job's identity.
import { hostname } from 'node:os'
import { chunksOf, readBody } from '../../../sdk/src/body.ts'
import type { Action } from '../kit/action.ts'
import type { Context } from '../kit/context.ts'
import { exitCodes, Failure, usage } from '../kit/failures.ts'
import { deleteLogin, fileOf, storeLogin } from '../kit/logins.ts'
import { requireProject } from '../kit/project.ts'
import { ask, canAsk } from '../kit/prompt.ts'
import { findToken, originOf } from '../kit/server.ts'
import { clean, time } from '../kit/text.ts'
import { openInBrowser } from './open.ts'

type Options = { oidc?: boolean; project?: string }

export const login: Action<Options> = async (context, _, { oidc, project }) => {
  const { out, options, env, signal } = context
  // If no server is configured, we ask for one.
  const server = await context.server().catch(async () => {
    options.url = originOf(await ask('URL of the server?', '--url', signal))
    return context.server()
  })
  const token = options.token ?? (oidc ? await exchange(context, project) : await approve(context))
  await describeToken(context, server, token)
  await storeLogin(server, token, env)
  out.say(`The token is stored in ${fileOf(env)}.`)
}

/** Shows the account of a token; throws if the token is invalid. */
async function describeToken({ out, send }: Context, server: string, token: string): Promise<void> {
  const headers = { authorization: `Bearer ${token}` }
  const read = async (path: string) => (await send('GET', path, { open: true, headers })).json()
  const current = (await read('/api/tokens/current')) as Token
  // Some tokens can't read the account.
  const account = (await read('/api/account').catch(() => null)) as { name: string } | null
  out.say(`Signed in to ${server}${account ? `, account ${clean(account.name)}` : ''}.`)
  out.show({ server, account, token: current }, () => '')
}

type Token = { id: string; name: string; scopes: string[]; projects: string[] | null; expiresAt: string | null }
type Device = {
  device_code: string
  user_code: string
  verification_uri: string
  verification_uri_complete: string
  expires_in: number
  interval: number
}

// RFC 8628, section 3.2.
const defaultPollSeconds = 5

/** The time between polls. Invalid and huge values are replaced, because a timer would not wait at all. */
export function pollMsOf(seconds: unknown): number {
  return typeof seconds === 'number' ? Math.min(Math.max(seconds, 1), 60) * 1000 : defaultPollSeconds * 1000
}

/** Polls until the person has compared the code and approved it in the console. */
async function approve({ out, send, signal }: Context): Promise<string> {
  const response = await send('POST', '/auth/device', {
    open: true,
    body: { client: `berth on ${hostname()}`.slice(0, 100) },
  })
  const device = (await response.json()) as Device
  out.say(`Open ${clean(device.verification_uri_complete)}`)
  out.say(
    `and approve the code ${out.paint('bold', clean(device.user_code))}. Only approve a code that your own terminal shows.`,
  )
  if (canAsk()) openInBrowser(device.verification_uri_complete)
  let intervalMs = pollMsOf(device.interval)
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, intervalMs))
    signal.throwIfAborted()
    const poll = await send('POST', '/auth/device/token', {
      open: true,
      any: true,
      body: { device_code: device.device_code },
    })
    const body = (await poll.json().catch(() => ({}))) as { access_token?: string; code?: string; detail?: string }
    if (poll.ok && body.access_token) return body.access_token
    if (body.code === 'slow_down') intervalMs = pollMsOf(intervalMs / 1000 + defaultPollSeconds)
    else if (body.code === 'access_denied')
      throw new Failure(exitCodes.refused, 'The sign-in was denied in the console.')
    else if (body.code === 'expired_token')
      throw new Failure(exitCodes.notSignedIn, 'The code has expired.', 'Run `berth login` again.')
    else if (body.code !== 'authorization_pending')
      throw new Failure(exitCodes.failed, body.detail ?? `The server responded with ${poll.status}.`)
  }
}

/** In CI: exchanges the identity token of the job for a short-lived token. */
async function exchange(context: Context, given: string | undefined): Promise<string> {
  const project = await requireProject(context, given)
  const token = context.env.BERTH_ID_TOKEN || (await githubIdentity(context))
  const response = await context.send('POST', '/auth/oidc/token', { open: true, body: { token, project } })
  const body = (await response.json()) as { access_token?: string; secret?: string; token?: string }
  const secret = body.access_token ?? body.secret ?? body.token
  if (typeof secret !== 'string') throw new Failure(exitCodes.failed, 'The server returned no token.')
  return secret
}

async function githubIdentity({ env, server, signal }: Context): Promise<string> {
  const { ACTIONS_ID_TOKEN_REQUEST_URL: requestUrl, ACTIONS_ID_TOKEN_REQUEST_TOKEN: bearer } = env
  if (!requestUrl || !bearer) {
    throw usage(
      'This CI job has no identity token.',
      'In GitHub Actions, add the permission `id-token: write`. Elsewhere, set BERTH_ID_TOKEN.',
    )
  }
  const url = new URL(requestUrl)
  url.searchParams.set('audience', await server())
  const { createFetch } = await import('../kit/proxy.ts')
  const response = await createFetch(
    url.origin,
    env,
  )(new Request(url, { headers: { authorization: `Bearer ${bearer}` }, signal }))
  const { value } = identityIn(Buffer.from(await readBody(chunksOf(response.body))).toString('utf8'))
  if (!response.ok || !value)
    throw new Failure(exitCodes.refused, `GitHub returned no identity token (${response.status}).`)
  return value
}

function identityIn(text: string): { value?: string } {
  try {
    return JSON.parse(text) ?? {}
  } catch {
    return {}
  }
}

export const logout: Action = async (context) => {
  const { out, env } = context
  const server = await context.server()
  const token = await deleteLogin(server, env)
  if (token === null) throw new Failure(exitCodes.notSignedIn, `No login is stored for ${server}.`)
  if (!(await revoke(context, token))) {
    const hint = 'Revoke it in the console, or run `berth tokens rm` with another token.'
    throw new Failure(
      exitCodes.failed,
      "The login is deleted here, but we couldn't revoke the token. It still works.",
      hint,
    )
  }
  out.say(`Signed out of ${server} and revoked the token.`)
}

/** Revokes a token; returns whether it no longer works. */
async function revoke({ send }: Context, token: string): Promise<boolean> {
  const headers = { authorization: `Bearer ${token}` }
  const call = (method: string, path: string, body?: object) =>
    send(method, path, { open: true, any: true, headers, body }).catch(() => null)
  if ((await call('POST', '/auth/device/revoke', { token }))?.ok) return true
  // Older servers revoke a token by ID, if it has the scope.
  const current = await call('GET', '/api/tokens/current')
  if (current?.status === 401) return true
  if (!current?.ok) return false
  return (await call('DELETE', `/api/tokens/${(await current.json()).id}`))?.ok ?? false
}

export const whoami: Action = async (context) => {
  const server = await context.server()
  const token = await findToken(server, context.options, context.env)
  if (!token)
    throw new Failure(exitCodes.notSignedIn, `You aren't signed in to ${server}.`, 'Run `berth login` to sign in.')
  const berth = await context.berth()
  const current = await berth.get('/tokens/current')
  const account = await berth.get('/account').catch(() => null)
  context.out.show({ server, account: account && { id: account.id, name: account.name }, token: current }, () =>
    [
      `server   ${server}`,
      `account  ${clean(account?.name ?? '(not visible to this token)')}`,
      `token    ${clean(current.name)} (${clean(current.id)})`,
      `scopes   ${clean(current.scopes.join(' '))}`,
      ...(current.projects ? [`projects ${clean(current.projects.join(' '))}`] : []),
      `expires  ${time(current.expiresAt)}`,
    ].join('\n'),
  )
}
