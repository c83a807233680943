// What can be done with a deployment: open, promote, roll back, cancel, deploy again, delete.
import { ConfirmButton, call, go, may, toast, useDialog } from '../kit/index.ts'
import { Ask } from './ask.tsx'
import { Deploy } from './deploy.tsx'
import { type Deployment, nameOf } from './deployment-table.tsx'

type ActionsProps = {
  of: Deployment
  /** What production serves, if it is known. */
  current: Deployment | undefined
  /** Other deployments of production that are ready, newest first. */
  before: readonly Deployment[]
}

export function DeploymentActions({ of, current, before }: ActionsProps) {
  const [promoting, back, again] = [useDialog(), useDialog(), useDialog()]
  const path = { params: { path: { id: of.id } } }
  const writes = may('deployments:write')
  const ready = of.state === 'READY'
  // What production served before this one: the newest that is older.
  const previous = of.current ? before.find((it) => it.id < of.id) : undefined
  const isOlder = of.production && current !== undefined && of.id < current.id
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
          <p>
            The build ends within seconds and its output is lost. Production stays as it is. Redeploy builds it again.
          </p>
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
            Its address <code>{new URL(of.url).host}</code> stops being served and is never given out again; its log is
            lost. The commit stays in the repository: deploy it again, and it gets a new address.
          </p>
        </ConfirmButton>
      )}
      {writes && of.state !== 'BUILDING' && (
        <button type="button" onClick={again.open}>
          Redeploy
        </button>
      )}
      {writes && previous && (
        <button type="button" onClick={back.open}>
          Roll back
        </button>
      )}
      {writes && ready && !of.current && (
        <button type="button" onClick={promoting.open}>
          {isOlder ? 'Roll back to this' : 'Promote'}
        </button>
      )}
      {ready && (
        <a class="button primary" href={of.url} target="_blank" rel="noreferrer">
          Open
        </a>
      )}
      <Ask
        of={promoting}
        title={isOlder ? 'Roll back to this deployment' : 'Promote to production'}
        call={call('post', '/deployments/{id}/promote', path)}
        action={isOlder ? 'Roll back' : 'Promote'}
        done={() => toast('Production serves it now.')}
      >
        <p>
          Production serves <code>{of.commit}</code> at once, without a build
          {current && (
            <>
              {' '}
              instead of <code>{current.commit}</code>
            </>
          )}
          . The other one stays, and can be promoted again.
        </p>
        {!of.production && (
          <p class="soft">It was built as a preview, with the variables of previews. They stay in it as they were.</p>
        )}
      </Ask>
      {previous && (
        <Ask
          of={back}
          title="Roll back production"
          call={call('post', '/deployments/{id}/promote', { params: { path: { id: previous.id } } })}
          action={`Roll back to ${previous.commit}`}
          done={({ id }) => {
            toast('Rolled back.')
            go(`/deployments/${id}`)
          }}
        >
          <p>
            Production serves the deployment before this one at once: <code>{previous.commit}</code>, {nameOf(previous)}
            . This one stays, and can be promoted again.
          </p>
        </Ask>
      )}
      <Deploy of={again} project={of.project} branch={of.ref} production={of.production} />
    </>
  )
}
