// The columns of deployment tables: commit, state, build time.
import { type Column, DeploymentState, Elapsed, type Schemas, State, Time } from '../kit/index.ts'

export type Deployment = Schemas['Deployment']

/** The commit message, or else the ref. */
export const nameOf = ({ commitMessage, ref }: Deployment) => commitMessage || ref

export const buildMs = ({ startedAt, finishedAt }: Deployment) =>
  startedAt && finishedAt ? Date.parse(finishedAt) - Date.parse(startedAt) : null

export function median(values: number[]): number | null {
  const sorted = [...values].sort((one, other) => one - other)
  return sorted[Math.floor(sorted.length / 2)] ?? null
}

export function Target({ of }: { of: Deployment }) {
  if (of.current) return <State is="ready">In production</State>
  return <span class="soft">{of.production ? 'Production' : 'Preview'}</span>
}

export function deploymentColumns({ project }: { project: boolean }): Column<Deployment>[] {
  const columns: Column<Deployment>[] = [
    {
      name: 'Deployment',
      cell: (it) => (
        <>
          <a class="clip" href={`/deployments/${it.id}`}>
            <b>{nameOf(it)}</b>
          </a>
          <div class="soft">
            {project && (
              <>
                <a href={`/projects/${it.project}`}>{it.project}</a>
                {' · '}
              </>
            )}
            <code>{it.commit || 'commit not known yet'}</code>
          </div>
        </>
      ),
    },
    {
      name: 'State',
      cell: (it) => (
        <>
          <DeploymentState of={it} />
          {it.error && <div class="soft">{it.error.code}</div>}
        </>
      ),
    },
    { name: 'Branch', wide: true, cell: (it) => <code class="clip">{it.ref}</code> },
    { name: 'Target', wide: true, cell: (it) => <Target of={it} /> },
    {
      name: 'Build',
      num: true,
      wide: true,
      cell: (it) => (it.startedAt ? <Elapsed from={it.startedAt} to={it.finishedAt} /> : '–'),
    },
    { name: 'Created', num: true, cell: (it) => <Time at={it.createdAt} /> },
  ]
  return columns
}
