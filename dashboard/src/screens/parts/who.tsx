// Who did something: resolves the IDs of people and tokens to their names.
import { access, call, may, me, useList } from '../../kit/index.ts'

/** The name of `usr_…` or `tok_…`; undefined if unknown. */
export type NameOf = (id: string) => string | undefined

export function useNames(): NameOf {
  const seesAll = access.value?.projects === null
  const query = { params: { query: { limit: 100 } } }
  const tokens = useList(seesAll && may('tokens:read') ? call('get', '/tokens', query) : null, { on: ['token.*'] })
  const members = useList(seesAll && may('members:read') ? call('get', '/members', query) : null, { on: ['member.*'] })
  const self = me.value?.user
  return (id) => {
    if (id === self?.id) return self.name
    if (id.startsWith('usr_')) return members.items?.find(({ userId }) => userId === id)?.name
    return tokens.items?.find((token) => token.id === id)?.name
  }
}

type WhoProps = { id: string; names: NameOf /** Without a link. */; plain?: boolean }

/** A person by name, a token as such, or the platform itself. */
export function Who({ id, names, plain }: WhoProps) {
  if (id === 'system') return <span class="soft">the platform</span>
  const name = names(id)
  if (id.startsWith('tok_')) {
    return name === undefined ? (
      <span class="soft" title={id}>
        a revoked or expired token
      </span>
    ) : (
      <span title={id}>
        <span class="soft">token</span> {plain ? name : <a href={`/tokens/${id}`}>{name}</a>}
      </span>
    )
  }
  return <span title={id}>{name ?? <code>{id}</code>}</span>
}
