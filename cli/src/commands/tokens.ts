// `berth tokens`: API tokens of the account.
import type { Schemas } from '../../../sdk/src/types.ts'
import type { Action } from '../kit/action.ts'
import { collect } from '../kit/collect.ts'
import { usage } from '../kit/failures.ts'
import { confirm } from '../kit/prompt.ts'
import { clean, time } from '../kit/text.ts'

type Token = Schemas['Token']

export const list: Action = async ({ berth, out }) => {
  const found = await collect((await berth()).list('/tokens'))
  const heads = ['ID', 'NAME', 'PREFIX', 'LAST USED', 'EXPIRES', 'CREATED BY', 'REPLACED BY', 'SCOPES']
  out.list(found, heads, (it: Token) => [
    it.id,
    it.name,
    it.prefix,
    time(it.lastUsedAt),
    time(it.expiresAt),
    it.creatorId,
    it.replacedBy,
    it.scopes.join(' '),
  ])
}

type New = { scope?: string[]; project?: string[]; expires?: string }

export const create: Action<New> = async ({ berth, out }, [name], { scope, project, expires }) => {
  const body = { name, scopes: scope, projects: project, expiresAt: expires && timeOf(expires) }
  const created = await (await berth()).post('/tokens', { body: body as never })
  out.say(`Created ${clean(created.id)}. Its secret is shown only once:`)
  out.show(created, () => clean(created.secret))
}

/** Parses a time, or a number of days or hours from now. */
function timeOf(text: string): string {
  const [, count, unit] = /^(\d{1,4})([dh])$/.exec(text) ?? []
  if (count) return new Date(Date.now() + Number(count) * (unit === 'd' ? 24 : 1) * 3_600_000).toISOString()
  if (Number.isNaN(Date.parse(text))) throw usage('--expires must be a time such as 2027-01-31T12:00:00Z, or 90d.')
  return text
}

export const remove: Action = async ({ berth, out, options, signal }, [id]) => {
  await confirm(`Revoke ${id}, its replacements by rotation, and all tokens that these created?`, options.yes, signal)
  await (await berth()).delete('/tokens/{id}', { params: { path: { id: id! } } })
  out.say(`Revoked ${id}.`)
}
