// The deployments of the account or of a project, with filters in the URL.
import { call, Empty, ListTable, may, Panel, Top, useDialog, useList, useParam } from '../kit/index.ts'
import { Deploy } from './deploy.tsx'
import { deploymentColumns } from './deployment-table.tsx'
import { Filter, Filters, FindBox } from './parts/filters.tsx'

const states = ['BUILDING', 'READY', 'ERROR', 'CANCELED'] as const
type State = (typeof states)[number]
const asState = (text: string) => states.filter((state) => text.split(',').includes(state))

export default function Deployments() {
  const deploying = useDialog()
  return (
    <>
      <Top title="Deployments">
        {may('deployments:write') && (
          <button type="button" class="primary" onClick={deploying.open}>
            Deploy
          </button>
        )}
      </Top>
      <DeploymentList />
      <Deploy of={deploying} />
    </>
  )
}

/** Without `project`, a filter can choose one. */
export function DeploymentList({ project }: { project?: string }) {
  const [state] = useParam('state')
  const [target] = useParam('target')
  const [ref] = useParam('ref')
  const [commit] = useParam('commit')
  const [only] = useParam('project')
  const of = project ?? only
  const chosen: State[] = asState(state)
  const query = {
    limit: 25,
    ...(of && { project: [of] }),
    ...(chosen.length > 0 && { state: chosen }),
    ...(target && { production: target === 'production' }),
    ...(ref && { ref }),
    ...(/^[0-9a-f]{7,64}$/i.test(commit) && { commit }),
  }
  const list = useList(call('get', '/deployments', { params: { query } }), {
    on: ['deployment.*'],
    when: ({ data }) => !of || data.project === of,
  })
  const isFiltered = Object.keys(query).length > (project ? 2 : 1)
  return (
    <Panel title="Deployments" note="newest first, updated live" call={list.call}>
      <Filters>
        <Filter
          name="state"
          label="State"
          options={{ '': 'Any state', BUILDING: 'Building', READY: 'Ready', ERROR: 'Error', CANCELED: 'Canceled' }}
        />
        <Filter
          name="target"
          label="Target"
          options={{ '': 'Any target', production: 'Production', preview: 'Preview' }}
        />
        {!project && <FindBox name="project" label="Project" />}
        <FindBox name="ref" label="Branch or tag" />
        <FindBox name="commit" label="Commit" hint="7 digits or more" />
      </Filters>
      <ListTable
        label="Deployments"
        of={list}
        keyOf={(it) => it.id}
        columns={deploymentColumns({ project: !project })}
        empty={
          isFiltered ? (
            <Empty title="No matching deployments">
              <p>Change a filter. Deployments are deleted after 30 days unless they serve production.</p>
            </Empty>
          ) : (
            <Empty title="No deployments yet">
              <p>Deploy a branch, or set up a project's push hook to deploy every push.</p>
            </Empty>
          )
        }
      />
    </Panel>
  )
}
