// The zones of the account: every domain has one, except wildcards, which live in that of their host.
import { call, DomainState, Empty, Loaded, More, Panel, Table, Time, Top, useList, useParam } from '../kit/index.ts'
import { domainPath, zonePath } from './domain-data.ts'
import { FindBox } from './filters.tsx'

export default function Zones() {
  const [search] = useParam('search')
  const query = { limit: 50, ...(search && { search }) }
  const list = useList(call('get', '/domains', { params: { query } }), { on: ['domain.*'] })
  const zones = list.items?.filter(({ name }) => !name.startsWith('*'))
  return (
    <>
      <Top title="DNS" />
      <Panel title="Zones" call={list.call}>
        <div class="filters">
          <FindBox name="search" label="Part of the name" />
        </div>
        <Loaded of={list}>
          {() => (
            <>
              <Table
                label="Zones"
                rows={zones ?? []}
                keyOf={(it) => it.name}
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
                empty={
                  search ? (
                    <Empty title="No zone is like that" />
                  ) : (
                    <Empty title="No zones yet">
                      <p>
                        A zone comes with a domain. <a href="/domains">Add a domain</a>, then its records are here.
                      </p>
                    </Empty>
                  )
                }
              />
              <More of={list} />
            </>
          )}
        </Loaded>
      </Panel>
    </>
  )
}
