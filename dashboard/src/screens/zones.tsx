// The zones of the account. Every domain has one, except wildcards, which are in the zone of their host.
import { call, DomainState, ListPage, type Schemas, Time, useList, useParam } from '../kit/index.ts'
import { domainPath, zonePath } from './domain-data.ts'
import { Filters, FindBox } from './parts/filters.tsx'

export default function Zones() {
  const [search] = useParam('search')
  const query = { limit: 50, ...(search && { search }) }
  const list = useList(call('get', '/domains', { params: { query } }), { on: ['domain.*'] })
  const items = list.items?.filter(({ name }) => !name.startsWith('*'))
  const zones: typeof list = Object.assign(Object.create(list), { items })
  return (
    <ListPage
      title="DNS"
      panel="Zones"
      isFiltered={search !== ''}
      filters={
        <Filters>
          <FindBox name="search" label="Part of the name" />
        </Filters>
      }
      of={zones}
      keyOf={(it: Schemas['Domain']) => it.name}
      columns={[
        {
          name: 'Zone',
          cell: (it) => (
            <a href={zonePath(it.name)}>
              <b>{it.name}</b>
            </a>
          ),
        },
        {
          name: 'Domain',
          cell: (it) => (
            <a href={domainPath(it.name)}>
              <DomainState of={it} />
            </a>
          ),
        },
        {
          name: 'Nameservers',
          wide: true,
          cell: (it) => it.nameservers.map((name) => <code class="listed">{name}</code>),
        },
        { name: 'Added', num: true, wide: true, cell: (it) => <Time at={it.createdAt} /> },
      ]}
      empty={{
        title: 'No zones yet',
        text: (
          <>
            Every domain has a zone. <a href="/domains">Add a domain</a> to edit its records.
          </>
        ),
      }}
    />
  )
}
