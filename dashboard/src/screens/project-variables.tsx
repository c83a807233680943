// The variables of a project by target; secrets are never shown again.
import {
  Check,
  ConfirmButton,
  Copy,
  call,
  Dialog,
  Empty,
  Field,
  Form,
  Loaded,
  may,
  Panel,
  type Schemas,
  Select,
  State,
  Table,
  Time,
  toast,
  useDialog,
  useParam,
  useQuery,
} from '../kit/index.ts'
import { LongText } from './long-text.tsx'
import { Filter } from './parts/filters.tsx'

type Variable = Schemas['Variable']
type Target = Schemas['VariableTarget']
const targets: Record<Target, string> = { all: 'All', production: 'Production', preview: 'Preview' }

export function Variables({ project }: { project: string }) {
  const list = useQuery(call('get', '/projects/{project}/env', { params: { path: { project } } }), {
    on: ['project.updated'],
    when: ({ data }) => data.name === project,
  })
  const [target] = useParam('target')
  const setting = useDialog()
  const writes = may('projects:write')
  const set = writes && (
    <button type="button" onClick={setting.open}>
      Set a variable
    </button>
  )
  const saved = () => {
    setting.close()
    list.refetch()
    toast('Saved. It applies from the next build.')
  }
  return (
    <>
      <Panel title="Variables" note="changes apply from the next build" actions={set} call={list.call}>
        <Loaded of={list}>
          {({ env }) => (
            <>
              {env.length > 0 && (
                <div class="filters">
                  <Filter
                    name="target"
                    label="Target"
                    options={{ '': 'All targets', production: 'Production values', preview: 'Preview values' }}
                  />
                </div>
              )}
              <Table
                label="Variables"
                rows={target ? effectiveFor(target as Target, env) : env}
                keyOf={(it) => `${it.key} ${it.target}`}
                columns={[
                  { name: 'Name', cell: (it) => <code>{it.key}</code> },
                  { name: 'Target', cell: (it) => targets[it.target] },
                  { name: 'Value', cell: (it) => <Value of={it} /> },
                  { name: 'Changed', wide: true, num: true, cell: (it) => <Time at={it.updatedAt} /> },
                  {
                    name: 'Actions',
                    actions: true,
                    cell: (it) => writes && <VariableActions project={project} of={it} done={list.refetch} />,
                  },
                ]}
                empty={
                  <Empty title={target ? 'No matching variables' : 'No variables yet'}>
                    <p>Builds and servers get them in their environment.</p>
                    {set}
                  </Empty>
                }
              />
            </>
          )}
        </Loaded>
      </Panel>
      <Dialog of={setting} title="Set a variable">
        <VariableForm project={project} cancel={setting.close} done={saved} />
      </Dialog>
    </>
  )
}

/** A value for the target overrides the one for all. */
function effectiveFor(target: Target, all: readonly Variable[]): Variable[] {
  const own = all.filter((it) => it.target === target)
  return all.filter((it) => it.target === target || (it.target === 'all' && !own.some(({ key }) => key === it.key)))
}

function Value({ of }: { of: Variable }) {
  if (!of.readable) return <State is="off">Secret</State>
  return (
    <span class="row">
      {of.value ? <LongText text={of.value} /> : <span class="soft">empty</span>}
      <Copy text={of.value ?? ''} what={`value of ${of.key}`} />
    </span>
  )
}

type FormProps = { project: string; of?: Variable; cancel(): void; done(): void }

function VariableForm({ project, of, cancel, done }: FormProps) {
  return (
    <Form
      call={({ key = '', value = '', target, readable }) =>
        call('put', '/projects/{project}/env/{key}', {
          params: { path: { project, key: of?.key ?? (key || 'NAME') } },
          body: { value, target: of?.target ?? (target as Target), readable: readable === 'on' },
        })
      }
      submit={of ? 'Change the value' : 'Set the variable'}
      cancel={cancel}
      done={done}
    >
      {!of && (
        <>
          <Field name="key" label="Name" placeholder="API_URL" autocomplete="off" mono required autoFocus />
          <Select
            name="target"
            label="For"
            value="all"
            options={[
              { value: 'all', text: 'All deployments' },
              { value: 'production', text: 'Production only' },
              { value: 'preview', text: 'Previews only' },
            ]}
            hint="A production or preview value overrides the value for all."
          />
        </>
      )}
      <Field name="value" label="Value" lines={3} value={of?.value ?? ''} mono autoFocus={of !== undefined} />
      <Check
        name="readable"
        label="Readable"
        hint="Anyone who can read the project sees it. Otherwise it's secret and never shown again."
        checked={of?.readable ?? false}
      />
    </Form>
  )
}

function VariableActions({ project, of, done }: { project: string; of: Variable; done(): void }) {
  const changing = useDialog()
  const { key, target } = of
  const label = `${key} for ${targets[target].toLowerCase()}`
  return (
    <>
      <button type="button" class="quiet" aria-label={`Change ${label}`} onClick={changing.open}>
        Change
      </button>
      <ConfirmButton
        text="Delete"
        label={`Delete ${label}`}
        title={`Delete ${key}`}
        call={call('delete', '/projects/{project}/env/{key}', {
          params: { path: { project, key }, query: { target } },
        })}
        action={`Delete ${key}`}
        done={() => {
          done()
          toast("Deleted. The next build won't have it.")
        }}
      >
        <p>Deletes the value for {targets[target].toLowerCase()}. Later builds won't have it.</p>
      </ConfirmButton>
      <Dialog of={changing} title={`Change ${key}, ${targets[target]}`}>
        <VariableForm
          project={project}
          of={of}
          cancel={changing.close}
          done={() => {
            changing.close()
            done()
            toast('Saved. It applies from the next build.')
          }}
        />
      </Dialog>
    </>
  )
}
