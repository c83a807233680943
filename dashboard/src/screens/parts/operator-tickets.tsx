// The queue: tickets of all accounts.
import { call, Empty, ListTable, Panel, useList } from '../../kit/index.ts'
import { FilterSelect, Filters, FilterText, useFilters } from './filters.tsx'
import { ReadAgain } from './read-again.tsx'
import { priorityOptions, statusOptions, ticketColumns } from './tickets.tsx'

export function TicketQueue() {
  const filters = useFilters('status', 'priority', 'search')
  const query = { limit: 50, ...filters } as object
  const list = useList(call('get', '/operator/tickets', { params: { query } }), { on: ['ticket.*'] })
  return (
    <>
      <Filters>
        <FilterSelect name="status" label="State" options={statusOptions} />
        <FilterSelect name="priority" label="Priority" options={priorityOptions} />
        <FilterText name="search" label="Words of the subject" />
      </Filters>
      <Panel title="Tickets of all accounts" call={list.call} actions={<ReadAgain of={list} />}>
        <ListTable
          label="Tickets of all accounts"
          of={list}
          keyOf={({ id }) => id}
          columns={ticketColumns('support')}
          empty={
            <Empty title="No ticket">
              <p>What customers ask appears here, the newest first.</p>
            </Empty>
          }
        />
      </Panel>
    </>
  )
}
