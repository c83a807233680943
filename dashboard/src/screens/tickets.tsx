// The tickets of the account: questions to support.
import {
  call,
  Dialog,
  Empty,
  Field,
  Form,
  go,
  ListTable,
  may,
  Panel,
  Select,
  Top,
  useDialog,
  useList,
  useParam,
} from '../kit/index.ts'
import { FilterSelect, Filters, FilterText, useFilters } from './parts/filters.tsx'
import { priorities, priorityOptions, statusOptions, ticketColumns } from './parts/tickets.tsx'

export default function Tickets() {
  const filters = useFilters('status', 'priority', 'search')
  const query = { limit: 50, ...filters } as object
  const list = useList(call('get', '/tickets', { params: { query } }), { on: ['ticket.*'] })
  // `?about=dpl_…` opens the form: other screens link to it.
  const [about, setAbout] = useParam('about')
  const opening = useDialog()
  const isFiltered = Object.keys(filters).length > 0
  const button = may('tickets:write') && (
    <button type="button" class="primary" onClick={opening.open}>
      New ticket
    </button>
  )
  const close = () => {
    opening.close()
    if (about) setAbout('')
  }
  return (
    <>
      <Top title="Tickets">{button}</Top>
      <Filters>
        <FilterSelect name="status" label="State" options={statusOptions} />
        <FilterSelect name="priority" label="Priority" options={priorityOptions} />
        <FilterText name="search" label="Words of the subject" />
      </Filters>
      <Panel title="Your questions to support" call={list.call}>
        <ListTable
          label="Tickets"
          of={list}
          keyOf={({ id }) => id}
          columns={ticketColumns('customer')}
          empty={
            isFiltered ? (
              <Empty title="No ticket like that">
                <p>
                  <a href="/tickets">Show all of them</a>
                </p>
              </Empty>
            ) : (
              <Empty title="No ticket yet">
                <p>Ask support when something does not work. Name the deployment or the domain that it is about.</p>
                {button}
              </Empty>
            )
          }
        />
      </Panel>
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
            label="What happens, and what did you expect?"
            lines={6}
            hint="Do not send secrets; support never needs them."
          />
          <Select name="priority" label="Priority" value="normal" options={priorities} />
          <Field
            name="related"
            label="About"
            mono
            value={about}
            placeholder="dpl_…, example.com"
            hint="A deployment, a domain or the id of a request. May be left empty."
          />
        </Form>
      </Dialog>
    </>
  )
}
