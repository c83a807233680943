// A project, with a tab for each part.
import { call, may, type Params, State, Tabs, Top, useDialog, useQuery, useTitle } from '../kit/index.ts'
import { Deploy } from './deploy.tsx'
import { DeploymentList } from './deployments.tsx'
import { Branches } from './project-branches.tsx'
import { Hook } from './project-hook.tsx'
import { ProjectOverview } from './project-overview.tsx'
import { Settings } from './project-settings.tsx'
import type { Project } from './project-type.ts'
import { Variables } from './project-variables.tsx'
import { Resource } from './resource.tsx'
import { TrafficPanel } from './traffic.tsx'

const tabs = {
  '': 'Overview',
  deployments: 'Deployments',
  branches: 'Branches',
  traffic: 'Traffic',
  variables: 'Variables',
  hook: 'Push hook',
  settings: 'Settings',
} as const
type Tab = keyof typeof tabs

export default function ProjectScreen({ params }: { params: Params }) {
  const name = params.name!
  const query = useQuery(call('get', '/projects/{project}', { params: { path: { project: name } } }), {
    on: ['project.*', 'takedown.*'],
    when: ({ data, type }) =>
      type.startsWith('takedown') ||
      data.name === name ||
      (data.formerNames as string[] | undefined)?.includes(name) === true,
  })
  useTitle(name)
  return (
    <Resource of={query} title={name} trail={<a href="/">Projects</a>}>
      {(project) => <Shown project={project} tab={(params.tab ?? '') as Tab} />}
    </Resource>
  )
}

function Shown({ project, tab }: { project: Project; tab: Tab }) {
  const deploying = useDialog()
  const { name } = project
  return (
    <>
      <Top
        title={name}
        trail={<a href="/">Projects</a>}
        state={project.takedown ? <State is="bad">Taken down</State> : null}
      >
        <a class="button" href={project.productionUrl} target="_blank" rel="noreferrer">
          Open
        </a>
        {may('deployments:write') && (
          <button type="button" class="primary" onClick={deploying.open}>
            Deploy
          </button>
        )}
      </Top>
      <Tabs
        label={`Sections of ${name}`}
        items={Object.entries(tabs).map(([key, text]) => ({ href: `/projects/${name}${key && `/${key}`}`, text }))}
      />
      <Content project={project} tab={tab} />
      <Deploy of={deploying} project={name} />
    </>
  )
}

function Content({ project, tab }: { project: Project; tab: Tab }) {
  switch (tab) {
    case '':
      return <ProjectOverview project={project} />
    case 'deployments':
      return <DeploymentList project={project.name} />
    case 'branches':
      return <Branches project={project} />
    case 'traffic':
      return <TrafficPanel project={project.name} />
    case 'variables':
      return <Variables project={project.name} />
    case 'hook':
      return <Hook project={project} />
    case 'settings':
      return <Settings project={project} />
    default:
      return (
        <p>
          This page doesn't exist. <a href={`/projects/${project.name}`}>Go to the project</a>
        </p>
      )
  }
}
