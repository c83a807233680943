// Imports a pasted zone file: shows the changes, then applies them unless the zone has changed meanwhile.
import { useState } from 'preact/hooks'
import {
  BerthError,
  berth,
  type Call,
  Curl,
  call,
  num,
  Panel,
  ProblemView,
  type Schemas,
  State,
  Table,
  toast,
} from '../kit/index.ts'

import { LongText } from './long-text.tsx'

type Import = Schemas['ZoneImport']
/** `skip`: leave out unsupported lines. */
type Upload = { text: string; etag: string; skip: boolean }
type Compared = Upload & { plan: Import }

/** Imports the text on top of the version that was compared. */
function importCall(domain: string, { text, etag, skip }: Upload, dryRun: boolean): Call<Import> {
  const query = { ...(dryRun && { dryRun }), ...(skip && { skipUnsupported: true }) }
  const params = { path: { domain }, query, header: { 'If-Match': etag } }
  const request = call('put', '/dns/{domain}/zone', { params, body: text })
  return { ...request, curl: request.curl && `${request.curl} -H 'If-Match: ${etag}'` }
}

/** The ETag of the current zone; the body isn't needed. */
async function versionOf(domain: string): Promise<string> {
  const { error, response } = await berth.raw.GET('/dns/{domain}/zone', {
    params: { path: { domain } },
    parseAs: 'text',
  })
  if (!response.ok) throw new BerthError(response, error)
  return response.headers.get('etag') ?? '*'
}

export function Paste({ domain, close }: { domain: string; close(): void }) {
  const [text, setText] = useState('')
  const [compared, setCompared] = useState<Compared | null>(null)
  const [error, setError] = useState<unknown>(null)
  const [busy, setBusy] = useState(false)
  const run = async (work: () => Promise<void>) => {
    setBusy(true)
    try {
      await work()
      setError(null)
    } catch (failure) {
      setError(failure)
    }
    setBusy(false)
  }
  const compare = (skip: boolean) =>
    run(async () => {
      const upload = { text, etag: await versionOf(domain), skip }
      setCompared({ ...upload, plan: await importCall(domain, upload, true).send() })
    })
  const apply = (upload: Upload) =>
    run(async () => {
      const done = await importCall(domain, upload, false).send()
      toast(`Applied: ${counts(done)}. Serial ${done.serial}.`)
      close()
    })
  const isStale = error instanceof BerthError && error.status === 412
  const isCurrent = compared !== null && compared.text === text && !isStale
  return (
    <Panel
      title="Paste a zone"
      note="replaces all records with those in the file"
      actions={
        <button type="button" class="quiet" onClick={close}>
          Close
        </button>
      }
    >
      <div class="body stack">
        <textarea
          class="mono"
          rows={compared ? 6 : 12}
          spellcheck={false}
          aria-label="Zone file"
          placeholder={`$ORIGIN ${domain}.\n$TTL 300\nwww 3600 IN A 192.0.2.10`}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <div class="row wrap">
          <input
            type="file"
            aria-label="Zone file from disk"
            onInput={async ({ currentTarget: { files } }) => files?.[0] && setText(await files[0].text())}
          />
          <button
            type="button"
            class={isCurrent ? '' : 'primary'}
            disabled={busy || text.trim() === ''}
            onClick={() => compare(false)}
          >
            Compare
          </button>
          {isCurrent && (
            <button
              type="button"
              class="primary"
              disabled={busy || isEmpty(compared.plan)}
              onClick={() => apply(compared)}
            >
              Apply {counts(compared.plan)}
            </button>
          )}
        </div>
        {isStale ? (
          <p role="alert">
            <State is="bad">The zone has changed.</State> Nothing was applied. Compare again.
          </p>
        ) : (
          error !== null && <ProblemView error={error} />
        )}
        {isUnsupported(error) && (
          <button type="button" disabled={busy} onClick={() => compare(true)}>
            Skip these lines
          </button>
        )}
      </div>
      {isCurrent && <Diff plan={compared.plan} />}
      {text.trim() !== '' && (
        <Curl
          text={importCall(domain, isCurrent ? compared : { text, etag: '*', skip: false }, !isCurrent).curl ?? ''}
        />
      )}
    </Panel>
  )
}

/** Whether skipping unsupported lines would fix every error. */
const isUnsupported = (error: unknown) =>
  error instanceof BerthError && error.errors.length > 0 && error.errors.every(({ code }) => code === 'unsupported')

const isEmpty = ({ created, updated, deleted }: Import) => created + updated + deleted === 0

function counts({ created, updated, deleted }: Import): string {
  const parts = [
    [created, 'new'],
    [updated, 'changed'],
    [deleted, 'deleted'],
  ] as const
  return parts
    .filter(([count]) => count > 0)
    .map(([count, word]) => `${num(count)} ${word}`)
    .join(', ')
}

type Line = { sign: '+' | '−' | '~'; name: string; type: string; value: string; ttl: string; key: string }

function linesOf({ changes }: Import): Line[] {
  return [
    ...changes.deleted.map((it): Line => ({ ...it, sign: '−', ttl: String(it.ttl), key: `- ${it.id}` })),
    ...changes.updated.map(
      ({ before, after }): Line => ({
        ...after,
        sign: '~',
        ttl: before.ttl === after.ttl ? String(after.ttl) : `${before.ttl} → ${after.ttl}`,
        key: `~ ${after.id}`,
      }),
    ),
    ...changes.created.map((it, index): Line => ({ ...it, sign: '+', ttl: String(it.ttl), key: `+ ${index}` })),
  ].sort((one, other) => one.name.localeCompare(other.name) || one.type.localeCompare(other.type))
}

const kinds = { '+': ['new', 'ready'], '−': ['deleted', 'bad'], '~': ['changed', 'busy'] } as const
function Diff({ plan }: { plan: Import }) {
  return (
    <div aria-live="polite">
      <p class="note">
        {isEmpty(plan) ? (
          <State is="ready">The zone already has these records.</State>
        ) : (
          <>
            <b>{counts(plan)}</b>, <span class="soft">{num(plan.unchanged)} unchanged</span>
          </>
        )}
      </p>
      {!isEmpty(plan) && (
        <Table
          label="What would change"
          rows={linesOf(plan)}
          keyOf={({ key }) => key}
          columns={[
            {
              name: 'Change',
              cell: ({ sign }) => (
                <span class={`sign ${kinds[sign][1]}`}>
                  {sign} {kinds[sign][0]}
                </span>
              ),
            },
            { name: 'Name', cell: ({ name }) => <code>{name}</code> },
            { name: 'Type', cell: ({ type }) => type },
            { name: 'Value', cell: ({ value }) => <LongText text={value} /> },
            { name: 'TTL', num: true, wide: true, cell: ({ ttl }) => ttl },
          ]}
        />
      )}
      {plan.truncated && <p class="note soft">Only the first changes are listed. The counts cover all.</p>}
      <Notes title="Not imported" rows={plan.skipped.map(({ line, text, detail }) => [line, text, detail])} />
      <Notes title="Imported with changes" rows={plan.notes.map(({ line, detail }) => [line, detail, ''])} />
      <Notes
        title="Hidden by NS records that delegate their names"
        rows={plan.hidden.map(({ name, type, value, delegation }) => [
          null,
          `${name} ${type} ${value}`,
          `below ${delegation}`,
        ])}
      />
    </div>
  )
}

function Notes({ title, rows }: { title: string; rows: [line: number | null, text: string, why: string][] }) {
  if (rows.length === 0) return null
  return (
    <details class="note" open={rows.length <= 5}>
      <summary>
        {title} <span class="soft">({rows.length})</span>
      </summary>
      <ul>
        {rows.map(([line, text, why], index) => (
          <li key={index}>
            {line !== null && <span class="soft">line {line}: </span>}
            <code>{text}</code> <span class="soft">{why}</span>
          </li>
        ))}
      </ul>
    </details>
  )
}
