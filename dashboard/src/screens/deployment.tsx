// A deployment: its steps, its live log, why it failed, and the actions on it.
import { useEffect } from 'preact/hooks'
import {
  Copy,
  call,
  DeploymentState,
  duration,
  Elapsed,
  Facts,
  Panel,
  type Params,
  type Query,
  Time,
  Top,
  useQuery,
  useTitle,
} from '../kit/index.ts'
import { DeploymentActions } from './deployment-actions.tsx'
import { Compare } from './deployment-compare.tsx'
import { fixes } from './deployment-fixes.ts'
import { LogPanel } from './deployment-log.tsx'
import { type DeploymentLog, useLog } from './deployment-log-data.ts'
import { Steps } from './deployment-steps.tsx'
import { buildMs, type Deployment, median, nameOf, Target } from './deployment-table.tsx'
import { useProduction } from './production.ts'
import { Resource } from './resource.tsx'

export default function DeploymentScreen({ params }: { params: Params }) {
  const id = params.id!
  const query: Query<Deployment> = useQuery(call('get', '/deployments/{id}', { params: { path: { id } } }), {
    on: ['deployment.*'],
    when: ({ subject, data }) => subject === id || data.project === query.data?.project,
  })
  const log = useLog(id)
  // No event says that a build has started or cloned its commit; a new step in the log does.
  useEffect(() => {
    if (log.steps.value.size > 0) query.refetch()
  }, [log.steps.value.size])
  return (
    <Resource of={query} title="Deployment" trail={<a href="/deployments">Deployments</a>}>
      {(deployment) => <Shown of={deployment} log={log} />}
    </Resource>
  )
}

function Shown({ of, log }: { of: Deployment; log: DeploymentLog }) {
  const production = useProduction(of.project)
  const before = (production.data?.deployments ?? []).filter(({ id }) => id !== of.id)
  const current = before.find((it) => it.current)
  useTitle(nameOf(of))
  const self = call('get', '/deployments/{id}', { params: { path: { id: of.id } } })
  return (
    <>
      <Top
        title={nameOf(of)}
        trail={
          <>
            <a href={`/projects/${of.project}`}>{of.project}</a> /{' '}
            <a href={`/projects/${of.project}/deployments`}>deployments</a>
          </>
        }
        state={<DeploymentState of={of} />}
      >
        <DeploymentActions of={of} current={of.current ? of : current} before={before} />
      </Top>
      {of.error && <Failure of={of} />}
      <Panel title="Build" state={<Target of={of} />} note={<Total of={of} before={before} />} call={self}>
        <div class="body">
          <Facts
            rows={[
              [
                'Deployment',
                <>
                  <code>{of.id}</code> <Copy text={of.id} what="ID" />
                </>,
              ],
              [
                'Commit',
                <>
                  <code>{of.commit || 'not known yet'}</code> on{' '}
                  <a href={of.branchUrl ?? undefined} target="_blank" rel="noreferrer">
                    {of.ref}
                  </a>
                  <span class="soft"> · {sources[of.source]}</span>
                </>,
              ],
              [
                'URL',
                of.state === 'READY' ? (
                  <a href={of.url} target="_blank" rel="noreferrer">
                    {new URL(of.url).host}
                  </a>
                ) : (
                  <>
                    {new URL(of.url).host}{' '}
                    <span class="soft">{of.state === 'BUILDING' ? 'live when ready' : 'never served'}</span>
                  </>
                ),
              ],
              [
                'Created',
                <>
                  <Time at={of.createdAt} form="full" />{' '}
                  <span class="soft">
                    <Time at={of.createdAt} />
                  </span>
                </>,
              ],
            ]}
          />
        </div>
        <Steps of={of} lines={log.steps.value} before={before} />
      </Panel>
      <LogPanel of={of} log={log} />
      {production.data && (
        <Compare of={of} current={of.current ? of : current} before={before} call={production.call} />
      )}
    </>
  )
}

const sources = {
  api: 'from the API or console',
  push: 'from a push',
  promote: 'promoted from a preview',
  upload: 'from an upload',
  hook: 'from a deploy hook',
  pull_request: 'from a pull request',
}

/** The duration of the whole build: "11 s so far, usually 14 s". */
function Total({ of, before }: { of: Deployment; before: readonly Deployment[] }) {
  const usual = median(before.map(buildMs).filter((ms): ms is number => ms !== null))
  if (!of.startedAt) return <>{of.state === 'BUILDING' ? 'Waiting for a worker' : ''}</>
  return (
    <>
      <Elapsed from={of.startedAt} to={of.finishedAt} />
      {of.state === 'BUILDING' && ' so far'}
      {usual !== null && `, usually ${duration(usual)}`}
    </>
  )
}

function Failure({ of }: { of: Deployment }) {
  const { code, message, excerpt } = of.error!
  const known = fixes[code as keyof typeof fixes]
  return (
    <Panel title={of.state === 'CANCELED' ? 'Why it was canceled' : 'Why it failed'} state={<code>{code}</code>} pad>
      <div class="stack">
        <p class="pre">{message}</p>
        {excerpt && <pre class="excerpt">{excerpt}</pre>}
        {known && (
          <p>
            <b>What to do.</b> {known.text}{' '}
            {known.tab && <a href={`/projects/${of.project}/${known.tab}`}>Open the {known.tab}</a>}
          </p>
        )}
        {known && <p class="soft">Production didn't change.</p>}
      </div>
    </Panel>
  )
}
