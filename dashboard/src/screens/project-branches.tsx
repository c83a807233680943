// The deployed branches, with the newest deployment of each.
import { call, DeploymentState, Empty, Loaded, may, Panel, Table, Time, useDialog, useQuery } from '../kit/index.ts'
import { Deploy } from './deploy.tsx'
import { type Deployment, nameOf } from './deployment-table.tsx'
import type { Project } from './project-type.ts'

const limit = 100
type Branch = { ref: string; newest: Deployment; url: string | undefined; count: number }

function branchesOf(deployments: readonly Deployment[]): Branch[] {
  const byRef = Map.groupBy(deployments, ({ ref }) => ref)
  return [...byRef].map(([ref, all]) => {
    const ready = all.find(({ state }) => state === 'READY')
    return { ref, newest: all[0]!, url: ready?.branchUrl ?? ready?.url, count: all.length }
  })
}

export function Branches({ project }: { project: Project }) {
  const list = useQuery(call('get', '/deployments', { params: { query: { project: [project.name], limit } } }), {
    on: ['deployment.*'],
    when: ({ data }) => data.project === project.name,
  })
  return (
    <Panel title="Branches" note={`from the last ${limit} deployments`} call={list.call}>
      <Loaded of={list}>
        {({ deployments }) => (
          <Table
            label="Branches"
            rows={branchesOf(deployments)}
            keyOf={({ ref }) => ref}
            columns={[
              {
                name: 'Branch',
                cell: ({ ref }) => (
                  <>
                    <a class="clip" href={`/projects/${project.name}/deployments?ref=${encodeURIComponent(ref)}`}>
                      <code>{ref}</code>
                    </a>
                    {ref === project.settings.productionBranch && <div class="soft">Production branch</div>}
                  </>
                ),
              },
              {
                name: 'Newest deployment',
                cell: ({ newest }) => (
                  <>
                    <a class="clip" href={`/deployments/${newest.id}`}>
                      {nameOf(newest)}
                    </a>
                    <div class="soft">
                      <code>{newest.commit}</code> · <Time at={newest.createdAt} />
                    </div>
                  </>
                ),
              },
              { name: 'State', cell: ({ newest }) => <DeploymentState of={newest} /> },
              {
                name: 'URL',
                wide: true,
                cell: ({ url }) =>
                  url ? (
                    <a class="host" title={url} href={url} target="_blank" rel="noreferrer">
                      {new URL(url).host}
                    </a>
                  ) : (
                    '–'
                  ),
              },
              { name: 'Deployments', num: true, wide: true, cell: ({ count }) => count },
              { name: 'Actions', actions: true, cell: ({ ref }) => <DeployBranch project={project} branch={ref} /> },
            ]}
            empty={
              <Empty title="No branches yet">
                <p>Every branch you deploy or push gets its own URL.</p>
              </Empty>
            }
          />
        )}
      </Loaded>
    </Panel>
  )
}

function DeployBranch({ project, branch }: { project: Project; branch: string }) {
  const deploying = useDialog()
  if (!may('deployments:write')) return null
  return (
    <>
      <button type="button" class="quiet" aria-label={`Deploy ${branch}`} onClick={deploying.open}>
        Deploy
      </button>
      <Deploy
        of={deploying}
        project={project.name}
        branch={branch}
        production={branch === project.settings.productionBranch}
      />
    </>
  )
}
