// Who did something: ids of people and tokens, by the names that they have.
import { access, call, may, me, useList } from '../../kit/index.ts'

/** Tells the name behind `usr_…` or `tok_…`; undefined: not known, or gone. */
export type NameOf = (id: string) => string | undefined

export function useNames(): NameOf {
  const wide = access.value?.projects === null
  const query = { params: { query: { limit: 100 } } }
  const tokens = useList(wide && may('tokens:read') ? call('get', '/tokens', query) : null, { on: ['token.*'] })
  const members = useList(wide && may('members:read') ? call('get', '/members', query) : null, { on: ['member.*'] })
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
        a token that ended
      </span>
    ) : (
      <span title={id}>
        <span class="soft">token</span> {plain ? name : <a href={`/tokens/${id}`}>{name}</a>}
      </span>
    )
  }
  return <span title={id}>{name ?? <code>{id}</code>}</span>
}
