// The support tickets of the account.
import { call, Dialog, Field, Form, go, ListPage, may, Select, useDialog, useList, useParam } from '../kit/index.ts'
import { useFilters } from './parts/filters.tsx'
import { priorities, TicketFilters, ticketColumns, ticketFilters } from './parts/tickets.tsx'

export default function Tickets() {
  const filters = useFilters(...ticketFilters)
  const query = { limit: 50, ...filters } as object
  const list = useList(call('get', '/tickets', { params: { query } }), { on: ['ticket.*'] })
  // `?about=dpl_…` opens the form: other screens link to it.
  const [about, setAbout] = useParam('about')
  const opening = useDialog()
  const close = () => {
    opening.close()
    if (about) setAbout('')
  }
  return (
    <>
      <ListPage
        title="Tickets"
        panel="Support tickets"
        create={{ text: 'New ticket', scope: 'tickets:write', open: opening.open }}
        filters={<TicketFilters />}
        isFiltered={Object.keys(filters).length > 0}
        of={list}
        keyOf={({ id }) => id}
        columns={ticketColumns('customer')}
        empty={{
          title: 'No tickets yet',
          text: "Open one when something doesn't work.",
        }}
      />
      <Dialog
        of={{ ...opening, isOpen: opening.isOpen || (about !== '' && may('tickets:write')), close }}
        title="New ticket"
      >
        <Form
          call={({ subject = '', message = '', priority, related }) =>
            call('post', '/tickets', {
              body: { subject, message, priority: priority as 'normal', ...(related && { related }) },
            })
          }
          submit="Open the ticket"
          cancel={close}
          done={(ticket) => go(`/tickets/${ticket.id}`)}
        >
          <Field name="subject" label="Subject" autoFocus />
          <Field
            name="message"
            label="What happened, and what did you expect?"
            lines={6}
            hint="Don't send secrets. Support never needs them."
          />
          <Select name="priority" label="Priority" value="normal" options={priorities} />
          <Field
            name="related"
            label="Related to"
            mono
            value={about}
            placeholder="dpl_…, example.com"
            hint="Optional: a deployment, domain or request ID."
          />
        </Form>
      </Dialog>
    </>
  )
}
