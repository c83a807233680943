// The overview of a project: production, domains, a day's traffic, and the newest deployments.
import type { ComponentChildren } from 'preact'
import {
  Act,
  call,
  DomainState,
  Empty,
  Facts,
  Loaded,
  may,
  Panel,
  ProblemView,
  Table,
  Time,
  toast,
  useQuery,
} from '../kit/index.ts'
import { deploymentColumns, nameOf } from './deployment-table.tsx'
import { useProduction } from './production.ts'
import type { Project } from './project-type.ts'
import { TrafficPanel } from './traffic.tsx'

export function ProjectOverview({ project }: { project: Project }) {
  return (
    <>
      {project.takedown && <Takedown project={project} />}
      <div class="two">
        <Production project={project} />
        <Domains project={project.name} />
      </div>
      <TrafficPanel project={project.name} brief />
      <Newest project={project} />
    </>
  )
}

function Takedown({ project }: { project: Project }) {
  return (
    <Panel title="Taken down by the operator" pad>
      <p>
        {project.takedown?.reason ?? 'The operator gave no reason.'} Visitors can't see the project until the takedown
        ends. <a href="/tickets">Open a ticket</a> to appeal.
      </p>
    </Panel>
  )
}

function Production({ project }: { project: Project }) {
  const production = useProduction(project.name)
  const current = production.data?.deployments.find((it) => it.current)
  return (
    <Panel title="In production" call={production.call} pad>
      <Loaded of={production}>
        {() => (
          <Facts
            rows={[
              [
                'URL',
                <a href={project.productionUrl} target="_blank" rel="noreferrer">
                  {new URL(project.productionUrl).host}
                </a>,
              ],
              ['Repository', <code>{project.repo}</code>],
              [
                'Deployment',
                current ? (
                  <>
                    <a href={`/deployments/${current.id}`}>{nameOf(current)}</a>
                    <div class="soft">
                      <code>{current.commit}</code> on <code>{current.ref}</code> ·{' '}
                      <Time at={current.readyAt ?? current.createdAt} />
                    </div>
                  </>
                ) : (
                  <span class="soft">
                    {production.data!.deployments.length > 0
                      ? 'A deployment older than the last 20.'
                      : 'Nothing yet. Deploy to production.'}
                  </span>
                ),
              ],
              ...(project.pinned ? [pinned(project, project.pinned)] : []),
            ]}
          />
        )}
      </Loaded>
    </Panel>
  )
}

function pinned({ name }: Project, id: string): [string, ComponentChildren] {
  return [
    'Pinned to',
    <>
      <a href={`/deployments/${id}`}>{id}</a>
      {may('deployments:write') && (
        <>
          {' '}
          <Act
            text="Unpin"
            call={call('delete', '/projects/{project}/pin', { params: { path: { project: name } } })}
            done={() => toast('The next production deployment takes over.')}
          />
        </>
      )}
    </>,
  ]
}

function Domains({ project }: { project: string }) {
  const list = useQuery(call('get', '/domains', { params: { query: { project: [project], limit: 20 } } }), {
    on: ['domain.*'],
  })
  if (!may('domains:read')) return null
  const add = <a href={`/domains?add=${encodeURIComponent(project)}`}>Add a domain</a>
  return (
    <Panel title="Domains" note={add} call={list.call}>
      {list.error && !list.data ? <ProblemView error={list.error} retry={list.refetch} /> : null}
      {list.data && (
        <Table
          label="Domains of the project"
          rows={list.data.domains}
          keyOf={({ name }) => name}
          columns={[
            { name: 'Domain', cell: (it) => <a href={`/domains/${encodeURIComponent(it.name)}`}>{it.name}</a> },
            { name: 'State', cell: (it) => <DomainState of={it} /> },
          ]}
          empty={
            <Empty title="No domains yet">
              <p>The project has its own URL. {add} to use your own name.</p>
            </Empty>
          }
        />
      )}
    </Panel>
  )
}

function Newest({ project }: { project: Project }) {
  const list = useQuery(call('get', '/deployments', { params: { query: { project: [project.name], limit: 5 } } }), {
    on: ['deployment.*'],
    when: ({ data }) => data.project === project.name,
  })
  return (
    <Panel
      title="Newest deployments"
      note={<a href={`/projects/${project.name}/deployments`}>All deployments</a>}
      call={list.call}
    >
      <Loaded of={list}>
        {({ deployments }) => (
          <Table
            label="Newest deployments"
            rows={deployments}
            keyOf={(it) => it.id}
            columns={deploymentColumns({ project: false })}
            empty={
              <Empty title="No deployments yet">
                <p>
                  Deploy <code>{project.settings.productionBranch}</code> of <code>{project.repo}</code>, or{' '}
                  <a href={`/projects/${project.name}/hook`}>set up the push hook</a> and push to it.
                </p>
              </Empty>
            }
          />
        )}
      </Loaded>
    </Panel>
  )
}
