// Hosts and projects that were taken from the web.
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
import { ReadAgain } from './read-again.tsx'

type Takedown = Schemas['OperatorTakedown']

const options = { '': 'Standing or ended', false: 'Standing', true: 'Ended' }

export function Takedowns() {
  const filters = useFilters('ended')
  const query = { limit: 50, ...filters } as object
  const list = useList(call('get', '/operator/takedowns', { params: { query } }), { on: ['takedown.*'] })
  const making = useDialog()
  const close = () => {
    making.close()
    list.refetch()
  }
  return (
    <>
      <Panel
        title="Taken down"
        call={list.call}
        actions={
          <>
            <ReadAgain of={list} />
            <button type="button" onClick={making.open}>
              Take something down
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
                  <State is="bad">Down</State>
                ),
            },
            { name: 'Since', wide: true, cell: ({ createdAt }) => <Time at={createdAt} /> },
            { name: 'Actions', actions: true, cell: (it) => !it.endedAt && <End of={it} done={list.refetch} /> },
          ]}
          empty={
            <Empty title="Nothing is taken down">
              <p>A host or a project is answered with 403, and the owner is told why.</p>
            </Empty>
          }
        />
      </Panel>
      <Dialog of={making} title="Take something down">
        <Form
          call={({ what = '', reason = '' }) =>
            call('post', '/operator/takedowns', {
              body: { reason, ...(what.startsWith('prj_') ? { project: what } : { host: what }) },
            })
          }
          submit="Take it down"
          danger
          cancel={making.close}
          done={() => {
            toast('It is taken down.')
            close()
          }}
        >
          <p>
            Visitors get a 403 page without the owner’s name, and the project’s servers stop. It stays with the name,
            whoever claims it later.
          </p>
          <Field name="what" label="Host, or id of a project" mono placeholder="login-example.com, prj_…" autoFocus />
          <Field name="reason" label="Reason, for the owner to read" lines={3} />
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
      title={`Show ${what} again?`}
      action="End the takedown"
      call={call('delete', '/operator/takedowns/{id}', { params: { path: { id: of.id } } }) as Call<unknown>}
      done={done}
    >
      <p>It is served again within a second, and its owner is told.</p>
    </ConfirmButton>
  )
}
