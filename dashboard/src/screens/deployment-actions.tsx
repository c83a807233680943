// The actions on a deployment: open, promote, roll back, cancel, redeploy, delete.
import { Act, ConfirmButton, call, go, may, toast, useDialog } from '../kit/index.ts'
import type { Deployment } from './deployment-table.tsx'
import { Ask } from './parts/ask.tsx'

type ActionsProps = {
  of: Deployment
  /** The deployment in production, if known. */
  current: Deployment | undefined
  /** Other ready production deployments, newest first. */
  before: readonly Deployment[]
}

export function DeploymentActions({ of, current, before }: ActionsProps) {
  const [promoting, back] = [useDialog(), useDialog()]
  const path = { params: { path: { id: of.id } } }
  const writes = may('deployments:write')
  const ready = of.state === 'READY'
  const canRollBack = of.current && before.some((it) => it.id !== of.id)
  return (
    <>
      {writes && of.state === 'BUILDING' && (
        <ConfirmButton
          text="Cancel"
          kind=""
          title="Cancel the build"
          call={call('post', '/deployments/{id}/cancel', path)}
          action="Cancel the build"
          done={() => toast('Canceled.')}
        >
          <p>The build stops within seconds. Production doesn't change.</p>
        </ConfirmButton>
      )}
      {writes && of.state !== 'BUILDING' && !of.current && (
        <ConfirmButton
          text="Delete"
          title="Delete the deployment"
          call={call('delete', '/deployments/{id}', path)}
          action="Delete the deployment"
          done={() => {
            toast('Deleted.')
            go(`/projects/${of.project}/deployments`)
          }}
        >
          <p>
            <code>{new URL(of.url).host}</code> is deleted for good, and so is its log.
          </p>
        </ConfirmButton>
      )}
      {writes && of.state !== 'BUILDING' && (
        <Act
          text="Redeploy"
          call={call('post', '/deployments/{id}/redeploy', path)}
          done={({ id }) => go(`/deployments/${id}`)}
        />
      )}
      {writes && canRollBack && (
        <button type="button" onClick={back.open}>
          Roll back
        </button>
      )}
      {writes && ready && !of.current && (
        <button type="button" onClick={promoting.open}>
          Promote
        </button>
      )}
      {ready && (
        <a class="button primary" href={of.url} target="_blank" rel="noreferrer">
          Open
        </a>
      )}
      <Ask
        of={promoting}
        title="Promote to production"
        call={call('post', '/deployments/{id}/promote', path)}
        action="Promote"
        done={() => toast('Now in production.')}
      >
        <p>
          Puts <code>{of.commit}</code> into production at once, without a build
          {current && (
            <>
              {' '}
              instead of <code>{current.commit}</code>
            </>
          )}
          .
        </p>
        {!of.production && <p class="soft">It was built with preview variables and keeps them.</p>}
      </Ask>
      {canRollBack && (
        <Ask
          of={back}
          title="Roll back production"
          call={call('post', '/projects/{project}/rollback', { params: { path: { project: of.project } } })}
          action="Roll back"
          done={({ id }) => {
            toast('Rolled back.')
            go(`/deployments/${id}`)
          }}
        >
          <p>Production returns to the previous deployment and stays there until you promote another one.</p>
        </Ask>
      )}
    </>
  )
}
