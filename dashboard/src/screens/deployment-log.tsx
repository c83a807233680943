// The log panel: follow, search and download a log.
import { call, Log, Panel, ProblemView, State, useParam } from '../kit/index.ts'
import type { DeploymentLog } from './deployment-log-data.ts'
import type { Deployment } from './deployment-table.tsx'
import { FindBox } from './parts/filters.tsx'
import { save } from './save.ts'

export function LogPanel({ of, log }: { of: Deployment; log: DeploymentLog }) {
  const [find] = useParam('find')
  const rows = log.rows.value
  const text = () => rows.map(({ at, step, text }) => `${at} ${step} ${text}\n`).join('')
  const stream = call('get', '/deployments/{id}/logs', { params: { path: { id: of.id } } })
  const shown = { ...stream, curl: stream.curl && `${stream.curl} -N -H "Accept: text/event-stream"` }
  const isServer = of.state === 'READY' && of.files === null
  return (
    <Panel
      title="Log"
      state={<LogState of={log} />}
      call={shown}
      actions={
        <>
          <FindBox name="find" label="Find in log" />
          {isServer && log.state.value === 'ended' && (
            <button type="button" class="quiet" onClick={log.start}>
              Load newer lines
            </button>
          )}
          <button type="button" class="quiet" disabled={rows.length === 0} onClick={() => save(`${of.id}.log`, text())}>
            Download
          </button>
        </>
      }
    >
      {log.failure.value !== null && <ProblemView error={log.failure.value} retry={log.start} />}
      <Log
        label="Build log"
        rows={rows}
        find={find}
        empty={of.startedAt ? 'No output yet.' : "The build hasn't started. Its log will appear here."}
      />
      {find !== '' && (
        <p class="note soft" role="status">
          {rows.filter(({ text }) => text.toLowerCase().includes(find.toLowerCase())).length} of {rows.length} lines
        </p>
      )}
    </Panel>
  )
}

function LogState({ of: { state, rows } }: { of: DeploymentLog }) {
  switch (state.value) {
    case 'connecting':
      return <State is="off">Connecting</State>
    case 'live':
      return <State is="ready">Live</State>
    case 'resuming':
      return <State is="busy">Connection lost, resuming after line {rows.value.length}</State>
    case 'failed':
      return <State is="bad">Not live</State>
    case 'ended':
      return <State is="off">Ended</State>
  }
}
