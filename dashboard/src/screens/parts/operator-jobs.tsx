// Work in the background that was given up: run it again, or discard it.
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
import { ReadAgain } from './read-again.tsx'

type Job = Schemas['Job']

export function Jobs() {
  const list = useList(call('get', '/operator/jobs', { params: { query: { limit: 50 } } }))
  return (
    <Panel title="Jobs that were given up" call={list.call} actions={<ReadAgain of={list} />}>
      <ListTable
        label="Jobs that were given up"
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
          { name: 'Given up', wide: true, cell: ({ failedAt }) => failedAt && <Time at={failedAt} /> },
          { name: 'Actions', actions: true, cell: (it) => <Actions of={it} done={list.refetch} /> },
        ]}
        empty={
          <Empty title="No job was given up">
            <p>Jobs that failed for hours or days wait here.</p>
          </Empty>
        }
      />
    </Panel>
  )
}

function Actions({ of: { id, kind }, done }: { of: Job; done(): void }) {
  const asking = useDialog()
  const params = { path: { id } }
  const finish = (text: string) => () => {
    toast(text)
    done()
  }
  return (
    <>
      <button type="button" class="quiet" aria-label={`Run again: job ${id}`} onClick={asking.open}>
        Run again
      </button>
      <Ask
        of={asking}
        title={`Run job ${id} again?`}
        action="Run again"
        call={call('post', '/operator/jobs/{id}/retry', { params })}
        done={finish('It is queued again.')}
      >
        <p>It is queued as new. If the same work waits already, that runs at once.</p>
      </Ask>
      <ConfirmButton
        text="Discard"
        label={`Discard job ${id}`}
        title={`Discard job ${id}?`}
        action="Discard the job"
        call={call('delete', '/operator/jobs/{id}', { params }) as Call<unknown>}
        done={finish('It is discarded.')}
      >
        <p>
          What it was to do (<b>{kind}</b>) is not done, and it cannot be had again.
        </p>
      </ConfirmButton>
    </>
  )
}
