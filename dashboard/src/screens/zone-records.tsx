// The editable records of a zone. Changes are collected, checked while you type, and applied together.
import { useRef, useState } from 'preact/hooks'
import {
  Curl,
  call,
  Empty,
  Loaded,
  More,
  may,
  Panel,
  ProblemView,
  State,
  toast,
  useList,
  useParam,
} from '../kit/index.ts'
import { Filter, Filters, FindBox } from './parts/filters.tsx'
import { type DnsRecord, type Draft, draftOf, useChanges } from './zone-changes.ts'
import { EditRow, RecordRow } from './zone-row.tsx'
import { recordTypes } from './zone-types.ts'

export function Records({ domain }: { domain: string }) {
  const [type] = useParam('type')
  const [name] = useParam('name')
  const query = {
    limit: 100,
    ...(recordTypes.includes(type as Draft['type']) && { type: type as Draft['type'] }),
    ...(name && { name }),
  }
  const list = useList(call('get', '/dns/{domain}/records', { params: { path: { domain }, query } }), {
    on: ['dns.*'],
    when: ({ subject, data }) => subject === domain || data.domain === domain,
  })
  const changes = useChanges(domain, list.data)
  const [editing, setEditing] = useState<ReadonlySet<string>>(new Set())
  const addedCount = useRef(0)
  const writes = may('dns:write')

  const open = (key: string) => setEditing(new Set([...editing, key]))
  const close = (key: string) => setEditing(new Set([...editing].filter((it) => it !== key)))
  const add = () => {
    const key = `new ${++addedCount.current}`
    const draft: Draft = { type: (type as Draft['type']) || 'A', name: name || '', value: '', ttl: '300', comment: '' }
    changes.put({ key, before: null, draft })
    open(key)
  }
  const clear = () => {
    changes.clear()
    setEditing(new Set())
  }
  const rowOf = (record: DnsRecord) => {
    const change = changes.of(record.id)
    if (editing.has(record.id)) {
      const put = (draft: Draft) => changes.put({ key: record.id, before: record, draft })
      const undo = () => {
        changes.drop(record.id)
        close(record.id)
      }
      const draft = change?.draft ?? draftOf(record)
      return (
        <EditRow
          key={record.id}
          id={record.id}
          domain={domain}
          draft={draft}
          check={changes.check}
          put={put}
          undo={undo}
        />
      )
    }
    return (
      <RecordRow
        key={record.id}
        record={record}
        deleted={change?.draft === null}
        edit={writes ? () => open(record.id) : null}
        remove={() => changes.put({ key: record.id, before: record, draft: null })}
        undo={() => changes.drop(record.id)}
      />
    )
  }
  const added = changes.changes.filter(({ before }) => before === null)
  const isFiltered = Object.keys(query).length > 1
  const button = writes && (
    <button type="button" class="primary" onClick={add}>
      Add a record
    </button>
  )
  return (
    <Panel title="Records" actions={button} call={list.call}>
      <Filters>
        <Filter
          name="type"
          label="Type"
          options={{ '': 'All types', ...Object.fromEntries(recordTypes.map((it) => [it, it])) }}
        />
        <FindBox name="name" label="Name" hint="the full name, such as www or @" />
      </Filters>
      <Loaded of={list}>
        {() =>
          (list.items ?? []).length === 0 && added.length === 0 ? (
            isFiltered ? (
              <Empty title="No matching records">
                <p>Change a filter.</p>
              </Empty>
            ) : (
              <Empty title="No records yet">
                <p>
                  The site's own records work once the domain is verified. Add others, such as MX for email, or paste a
                  zone.
                </p>
              </Empty>
            )
          ) : (
            <>
              <table class="records">
                <caption class="unseen">Records of {domain}</caption>
                <thead>
                  <tr>
                    <th scope="col">Name</th>
                    <th scope="col">Type</th>
                    <th scope="col">Value</th>
                    <th scope="col" class="num">
                      TTL
                    </th>
                    <th scope="col" class="actions">
                      <span class="unseen">Actions</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {added.map(({ key, draft }) => (
                    <EditRow
                      key={key}
                      id={key}
                      domain={domain}
                      draft={draft!}
                      check={changes.check}
                      put={(next) => changes.put({ key, before: null, draft: next })}
                      undo={() => changes.drop(key)}
                      isNew
                    />
                  ))}
                  {(list.items ?? []).map(rowOf)}
                </tbody>
              </table>
              <More of={list} />
            </>
          )
        }
      </Loaded>
      {changes.changes.length > 0 && <ApplyBar of={changes} clear={clear} applied={list.refetch} />}
    </Panel>
  )
}

type ApplyProps = { of: ReturnType<typeof useChanges>; clear(): void; applied(): void }

/** How many changes there are, whether they are valid, and the Apply button. */
function ApplyBar({ of: { check, count, call: batch }, clear, applied }: ApplyProps) {
  const [curl, setCurl] = useState(false)
  const [busy, setBusy] = useState(false)
  const [failure, setFailure] = useState<unknown>(null)
  const wrong = check.fields.size > 0 || check.error !== null
  async function apply(): Promise<void> {
    if (!batch || busy) return
    setBusy(true)
    try {
      const { serial } = await batch.send()
      setFailure(null)
      toast(`Applied. Serial ${serial}.`)
      clear()
      applied()
    } catch (error) {
      setFailure(error)
    }
    setBusy(false)
  }
  const problem = failure ?? check.error
  return (
    <div class="apply">
      <div class="row wrap">
        <span role="status">
          {count === 0 ? (
            <State is="off">No changes yet</State>
          ) : wrong ? (
            <State is="bad">Not valid</State>
          ) : check.checked ? (
            <State is="ready">{count === 1 ? '1 change' : `${count} changes`}, checked</State>
          ) : (
            <State is="off">{count === 1 ? '1 change' : `${count} changes`}</State>
          )}
        </span>
        <span class="soft">Applied all together or not at all.</span>
        <div class="right row">
          {batch && (
            <button type="button" class="quiet" aria-expanded={curl} onClick={() => setCurl(!curl)}>
              curl
            </button>
          )}
          <button type="button" onClick={clear}>
            Discard
          </button>
          <button type="button" class="primary" disabled={busy || !batch || wrong || !check.checked} onClick={apply}>
            Apply
          </button>
        </div>
      </div>
      {problem !== null && <ProblemView error={problem} />}
      {curl && batch?.curl && <Curl text={batch.curl} />}
    </div>
  )
}
