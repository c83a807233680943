// Takedowns of hosts and projects.
import {
  type Call,
  ConfirmButton,
  call,
  Dialog,
  Empty,
  Field,
  Form,
  ListTable,
  Panel,
  type Schemas,
  State,
  Time,
  toast,
  useDialog,
  useList,
} from '../../kit/index.ts'
import { Filter, Filters, useFilters } from './filters.tsx'
import { Refresh } from './refresh.tsx'

type Takedown = Schemas['OperatorTakedown']

const options = { '': 'Active or ended', false: 'Active', true: 'Ended' }

export function Takedowns() {
  const filters = useFilters('ended')
  const query = { limit: 50, ...filters } as object
  const list = useList(call('get', '/operator/takedowns', { params: { query } }), { on: ['takedown.*'] })
  const creating = useDialog()
  const close = () => {
    creating.close()
    list.refetch()
  }
  return (
    <>
      <Panel
        title="Takedowns"
        call={list.call}
        actions={
          <>
            <Refresh of={list} />
            <button type="button" onClick={creating.open}>
              New takedown
            </button>
          </>
        }
      >
        <Filters>
          <Filter name="ended" label="State" options={options} />
        </Filters>
        <ListTable
          label="Takedowns"
          of={list}
          keyOf={(it: Takedown) => it.id}
          columns={[
            {
              name: 'What',
              cell: (it) => (
                <>
                  <b>{it.host ?? 'the whole project'}</b>
                  <div class="soft">
                    <a href={`/operator/accounts/${it.account.id}`}>{it.account.name}</a>, <code>{it.project}</code>
                  </div>
                </>
              ),
            },
            { name: 'Reason', wide: true, cell: ({ reason }) => reason },
            {
              name: 'State',
              cell: ({ endedAt }) =>
                endedAt ? (
                  <State is="off">
                    Ended <Time at={endedAt} />
                  </State>
                ) : (
                  <State is="bad">Active</State>
                ),
            },
            { name: 'Created', wide: true, cell: ({ createdAt }) => <Time at={createdAt} /> },
            { name: 'Actions', actions: true, cell: (it) => !it.endedAt && <End of={it} done={list.refetch} /> },
          ]}
          empty={
            <Empty title="No takedowns">
              <p>Hosts and projects taken down respond with 403. We tell the owner why.</p>
            </Empty>
          }
        />
      </Panel>
      <Dialog of={creating} title="New takedown">
        <Form
          call={({ what = '', reason = '' }) =>
            call('post', '/operator/takedowns', {
              body: { reason, ...(what.startsWith('prj_') ? { project: what } : { host: what }) },
            })
          }
          submit="Take it down"
          danger
          cancel={creating.close}
          done={() => {
            toast('Taken down.')
            close()
          }}
        >
          <p>
            Visitors get a 403 page without the owner's name, and the project's servers stop. A takedown of a host stays
            even if another account claims it.
          </p>
          <Field name="what" label="Host or project ID" mono placeholder="login-example.com, prj_…" autoFocus />
          <Field name="reason" label="Reason, shown to the owner" lines={3} />
        </Form>
      </Dialog>
    </>
  )
}

function End({ of, done }: { of: Takedown; done(): void }) {
  const what = of.host ?? of.project
  return (
    <ConfirmButton
      text="End"
      label={`End the takedown of ${what}`}
      kind="quiet"
      title={`End the takedown of ${what}?`}
      action="End the takedown"
      call={call('delete', '/operator/takedowns/{id}', { params: { path: { id: of.id } } }) as Call<unknown>}
      done={done}
    >
      <p>We serve it again within a second, and tell its owner.</p>
    </ConfirmButton>
  )
}
