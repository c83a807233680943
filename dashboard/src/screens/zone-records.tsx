// The records of a zone as a table that one edits. Changes are gathered, checked as one types, and applied all at once.
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
  const [editing, edit] = useState<ReadonlySet<string>>(new Set())
  const added = useRef(0)
  const writes = may('dns:write')

  const open = (key: string) => edit(new Set([...editing, key]))
  const shut = (key: string) => edit(new Set([...editing].filter((it) => it !== key)))
  const add = () => {
    const key = `new ${++added.current}`
    const draft: Draft = { type: (type as Draft['type']) || 'A', name: name || '', value: '', ttl: '300', comment: '' }
    changes.put({ key, before: null, draft })
    open(key)
  }
  const clear = () => {
    changes.clear()
    edit(new Set())
  }
  const rowOf = (record: DnsRecord) => {
    const change = changes.of(record.id)
    if (editing.has(record.id)) {
      const put = (draft: Draft) => changes.put({ key: record.id, before: record, draft })
      const undo = () => {
        changes.drop(record.id)
        shut(record.id)
      }
      const draft = change?.draft ?? draftOf(record)
      return (
        <EditRow
          key={record.id}
          id={record.id}
          domain={domain}
          draft={draft}
          verdict={changes.verdict}
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
  const news = changes.changes.filter(({ before }) => before === null)
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
          options={{ '': 'Every type', ...Object.fromEntries(recordTypes.map((it) => [it, it])) }}
        />
        <FindBox name="name" label="Name" hint="a whole name such as www, or @" />
      </Filters>
      <Loaded of={list}>
        {() =>
          (list.items ?? []).length === 0 && news.length === 0 ? (
            isFiltered ? (
              <Empty title="No record is like that">
                <p>Loosen a filter.</p>
              </Empty>
            ) : (
              <Empty title="No records yet">
                <p>
                  The site’s own records are answered once the domain is verified. Add others, such as MX for mail, or
                  paste a zone.
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
                  {news.map(({ key, draft }) => (
                    <EditRow
                      key={key}
                      id={key}
                      domain={domain}
                      draft={draft!}
                      verdict={changes.verdict}
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

/** What will happen, whether it may, and the button. */
function ApplyBar({ of: { verdict, count, call: batch }, clear, applied }: ApplyProps) {
  const [curl, show] = useState(false)
  const [busy, wait] = useState(false)
  const [failure, fail] = useState<unknown>(null)
  const wrong = verdict.fields.size > 0 || verdict.error !== null
  async function apply(): Promise<void> {
    if (!batch || busy) return
    wait(true)
    try {
      const { serial } = await batch.send()
      fail(null)
      toast(`Applied. Serial ${serial}.`)
      clear()
      applied()
    } catch (error) {
      fail(error)
    }
    wait(false)
  }
  const problem = failure ?? verdict.error
  return (
    <div class="apply">
      <div class="row wrap">
        <span role="status">
          {count === 0 ? (
            <State is="off">Nothing is changed yet</State>
          ) : wrong ? (
            <State is="bad">Not valid yet</State>
          ) : verdict.checked ? (
            <State is="ready">{count === 1 ? '1 change' : `${count} changes`}, checked</State>
          ) : (
            <State is="off">{count === 1 ? '1 change' : `${count} changes`}</State>
          )}
        </span>
        <span class="soft">All are applied together, or none.</span>
        <div class="right row">
          {batch && (
            <button type="button" class="quiet" aria-expanded={curl} onClick={() => show(!curl)}>
              curl
            </button>
          )}
          <button type="button" onClick={clear}>
            Discard
          </button>
          <button type="button" class="primary" disabled={busy || !batch || wrong || !verdict.checked} onClick={apply}>
            Apply
          </button>
        </div>
      </div>
      {problem !== null && <ProblemView error={problem} />}
      {curl && batch?.curl && <Curl text={batch.curl} />}
    </div>
  )
}
