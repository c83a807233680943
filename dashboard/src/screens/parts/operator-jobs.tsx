// Failed jobs: retry or discard them.
import {
  type Call,
  ConfirmButton,
  call,
  Empty,
  ListTable,
  num,
  Panel,
  type Schemas,
  Time,
  toast,
  useDialog,
  useList,
} from '../../kit/index.ts'
import { Ask } from './ask.tsx'
import { Refresh } from './refresh.tsx'

type Job = Schemas['Job']

export function Jobs() {
  const list = useList(call('get', '/operator/jobs', { params: { query: { limit: 50 } } }))
  return (
    <Panel title="Failed jobs" call={list.call} actions={<Refresh of={list} />}>
      <ListTable
        label="Failed jobs"
        of={list}
        keyOf={(it: Job) => it.id}
        columns={[
          {
            name: 'Job',
            cell: ({ id, kind, key }) => (
              <>
                <b>{kind}</b> <span class="soft">{id}</span>
                <div class="soft">
                  <code>{key}</code>
                </div>
              </>
            ),
          },
          { name: 'Last error', cell: ({ lastError }) => <span class="clip">{lastError ?? '–'}</span> },
          { name: 'Attempts', num: true, wide: true, cell: ({ attempts }) => num(attempts) },
          { name: 'Failed', wide: true, cell: ({ failedAt }) => failedAt && <Time at={failedAt} /> },
          { name: 'Actions', actions: true, cell: (it) => <Actions of={it} done={list.refetch} /> },
        ]}
        empty={
          <Empty title="No failed jobs">
            <p>Jobs that keep failing for hours or days end up here.</p>
          </Empty>
        }
      />
    </Panel>
  )
}

function Actions({ of: { id, kind }, done }: { of: Job; done(): void }) {
  const retrying = useDialog()
  const params = { path: { id } }
  const finish = (text: string) => () => {
    toast(text)
    done()
  }
  return (
    <>
      <button type="button" class="quiet" aria-label={`Retry job ${id}`} onClick={retrying.open}>
        Retry
      </button>
      <Ask
        of={retrying}
        title={`Retry job ${id}?`}
        action="Retry"
        call={call('post', '/operator/jobs/{id}/retry', { params })}
        done={finish('Queued again.')}
      >
        <p>Queues it as a new job. If the same job is already queued, that one runs at once.</p>
      </Ask>
      <ConfirmButton
        text="Discard"
        label={`Discard job ${id}`}
        title={`Discard job ${id}?`}
        action="Discard the job"
        call={call('delete', '/operator/jobs/{id}', { params }) as Call<unknown>}
        done={finish('Discarded.')}
      >
        <p>
          Deletes the job (<b>{kind}</b>) without running it. You can't undo this.
        </p>
      </ConfirmButton>
    </>
  )
}
