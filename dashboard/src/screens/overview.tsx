// The overview: the projects, what they serve, and what needs attention.
import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import {
  BerthError,
  bytes,
  type Column,
  call,
  currentUrl,
  DeploymentState,
  domainState,
  Empty,
  go,
  ListTable,
  may,
  now,
  num,
  Panel,
  type Query,
  type Schemas,
  Spark,
  State,
  Time,
  Top,
  takeReturnUrl,
  Used,
  useDialog,
  useList,
  useQuery,
} from '../kit/index.ts'
import { account, accountCall } from '../shell/account.ts'
import { NeedsYou } from './needs-you.tsx'
import { NewProject } from './new-project.tsx'
import { type Production, type Traffic, trafficCall, useDomains, useProduction } from './overview-data.ts'

type Project = Schemas['Project']

export default function Overview() {
  useEffect(() => {
    const next = takeReturnUrl()
    if (next !== null && currentUrl.peek().path === '/') go(next, { replace: true })
  }, [])
  const projects = useList(call('get', '/projects', { params: { query: { limit: 50 } } }), { on: ['project.*'] })
  const production = useProduction(may('deployments:read') ? projects.items : undefined)
  const domains = useDomains(may('domains:read'))
  const adding = useDialog()
  const add = may('projects:write') && (
    <button type="button" class="primary" onClick={adding.open}>
      New project
    </button>
  )
  return (
    <>
      <Top title="Projects">{add}</Top>
      <NeedsYou projects={projects.items} production={production.data} domains={domains.data} />
      <Panel title="In production" note="updated live" call={projects.call}>
        <ListTable
          label="Projects in production"
          of={projects}
          keyOf={(project: Project) => project.id}
          columns={columnsOf(production, domains)}
          empty={
            <Empty title="No projects yet">
              <p>A project builds and serves a repository. Create one, then deploy a branch or push to it.</p>
              {add}
            </Empty>
          }
        />
      </Panel>
      <AccountPanel />
      <NewProject of={adding} />
    </>
  )
}

const traffic: Column<Project> = {
  name: 'Requests / 24 h',
  wide: true,
  num: true,
  cell: (project) => <TrafficCell project={project.name} />,
}

function columnsOf(production: Query<Map<string, Production>>, domains: Query<Schemas['Domain'][]>): Column<Project>[] {
  return [
    {
      name: 'Project',
      cell: (project) => (
        <>
          <a href={`/projects/${project.name}`}>
            <b>{project.name}</b>
          </a>
          <div>
            <a class="soft" href={project.productionUrl} target="_blank" rel="noreferrer">
              {hostOf(project, domains.data)}
            </a>
          </div>
        </>
      ),
    },
    { name: 'State', cell: (project) => <ProductionState of={production.data?.get(project.name)} project={project} /> },
    {
      name: 'Commit',
      wide: true,
      cell: (project) => {
        const shown = production.data?.get(project.name)
        const deployment = shown?.current ?? shown?.latest
        if (!deployment) return '–'
        return (
          <>
            <a href={`/deployments/${deployment.id}`}>
              <code>{deployment.commit || '…'}</code>
            </a>{' '}
            <span class="soft">{deployment.ref}</span>
          </>
        )
      },
    },
    {
      name: 'Domains',
      wide: true,
      cell: (project) => <DomainHealth domains={domains.data?.filter((domain) => domain.project === project.name)} />,
    },
    ...(hasTraffic.value ? [traffic] : []),
  ]
}

/** The project's first working domain, or its own host. */
function hostOf(project: Project, domains: Schemas['Domain'][] | undefined): string {
  const own = domains?.find(
    (domain) => domain.project === project.name && domain.ssl === 'ACTIVE' && !domain.redirectTo,
  )
  return own?.name ?? new URL(project.productionUrl).host
}

function ProductionState({ of, project }: { of: Production | undefined; project: Project }) {
  if (project.takedown) return <State is="bad">Taken down</State>
  if (!of) return null
  const { latest } = of
  if (!latest) return <State is="off">Never deployed</State>
  return (
    <>
      <a href={`/deployments/${latest.id}`}>
        <DeploymentState of={latest} />
      </a>
      <div class="soft">
        {latest.error && `${latest.error.code} · `}
        <Time at={latest.finishedAt ?? latest.createdAt} />
      </div>
    </>
  )
}

const severity = { bad: 0, busy: 1, off: 2, ready: 3 }

function DomainHealth({ domains }: { domains: Schemas['Domain'][] | undefined }) {
  if (!domains || domains.length === 0) return <>–</>
  const states = domains.map(domainState).sort(([one], [other]) => severity[one] - severity[other])
  const [tone, word] = states[0]!
  if (tone === 'ready') return <State is="ready">{domains.length} active</State>
  const same = states.filter(([, other]) => other === word).length
  return <State is={tone}>{domains.length > 1 ? `${word}: ${same} of ${domains.length}` : word}</State>
}

// A server that doesn't count traffic has no such route; we don't call it again.
const hasTraffic = signal(true)

function TrafficCell({ project }: { project: string }) {
  const traffic = useQuery<Traffic>(hasTraffic.value ? trafficCall(project, now.peek()) : null)
  const { error } = traffic
  useEffect(() => {
    if (error instanceof BerthError && error.code === 'route_not_found') hasTraffic.value = false
  }, [error])
  const { data } = traffic
  if (!data) return <>–</>
  const label = `${num(data.totals.requests)} requests in the last 24 hours`
  return (
    <div class="row right-aligned">
      <span>{num(data.totals.requests)}</span>
      <Spark values={data.buckets.map(({ requests }) => requests)} label={label} />
    </div>
  )
}

function AccountPanel() {
  const current = account.value
  if (!current) return null
  const { usage, limits } = current
  const meters = [
    { label: 'Build minutes this month', value: usage.buildMinutesPerMonth, max: limits.buildMinutesPerMonth },
    { label: 'Storage', value: usage.storedBytes, max: limits.storedBytes, format: bytes },
    { label: 'Projects', value: usage.projects, max: limits.projects },
    { label: 'Domains', value: usage.domains, max: limits.domains },
  ]
  return (
    <Panel title="Account" note={<a href="/account">{current.name}</a>} call={accountCall()} pad>
      <ul class="meters">
        {meters.map(({ value, ...meter }) =>
          // Members limited to projects can't see the usage of the whole account.
          value === null ? null : (
            <li key={meter.label}>
              <div class="soft">{meter.label}</div>
              <Used {...meter} value={value} />
            </li>
          ),
        )}
      </ul>
    </Panel>
  )
}
