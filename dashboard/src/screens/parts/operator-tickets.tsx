// The ticket queue of support.
import { call, Empty, ListTable, Panel, useList } from '../../kit/index.ts'
import { useFilters } from './filters.tsx'
import { Refresh } from './refresh.tsx'
import { TicketFilters, ticketColumns, ticketFilters } from './tickets.tsx'

export function TicketQueue() {
  const filters = useFilters(...ticketFilters)
  const query = { limit: 50, ...filters } as object
  const list = useList(call('get', '/operator/tickets', { params: { query } }), { on: ['ticket.*'] })
  return (
    <Panel title="Tickets of all accounts" call={list.call} actions={<Refresh of={list} />}>
      <TicketFilters />
      <ListTable
        label="Tickets of all accounts"
        of={list}
        keyOf={({ id }) => id}
        columns={ticketColumns('support')}
        empty={
          <Empty title="No tickets">
            <p>Tickets from customers appear here, newest first.</p>
          </Empty>
        }
      />
    </Panel>
  )
}
