// A row of the record table: plain, marked for deletion, or being edited.
import { useEffect, useId, useRef } from 'preact/hooks'
import { LongText } from './long-text.tsx'
import type { Check, DnsRecord, Draft } from './zone-changes.ts'
import { examples, recordTypes } from './zone-types.ts'

type RecordRowProps = {
  record: DnsRecord
  deleted: boolean
  /** Null without permission. */
  edit: (() => void) | null
  remove(): void
  undo(): void
}

export function RecordRow({ record, deleted, edit, remove, undo }: RecordRowProps) {
  const label = `${record.name} ${record.type}`
  return (
    <tr class={deleted ? 'gone' : ''}>
      <td>
        <code>{record.name}</code>
      </td>
      <td>{record.type}</td>
      <td>
        <LongText text={record.value} />
        {record.comment && <div class="soft">{record.comment}</div>}
        {deleted && <div class="state bad">will be deleted</div>}
      </td>
      <td class="num">{record.ttl}</td>
      <td class="actions">
        {edit && !deleted && (
          <>
            <button type="button" class="quiet" aria-label={`Edit ${label}`} onClick={edit}>
              Edit
            </button>
            <button type="button" class="quiet danger" aria-label={`Delete ${label}`} onClick={remove}>
              Delete
            </button>
          </>
        )}
        {edit && deleted && (
          <button type="button" class="quiet" aria-label={`Keep ${label}`} onClick={undo}>
            Keep
          </button>
        )}
      </td>
    </tr>
  )
}

type EditRowProps = {
  id: string
  domain: string
  draft: Draft
  check: Check
  put(draft: Draft): void
  undo(): void
  isNew?: boolean
}

export function EditRow({ id, domain, draft, check, put, undo, isNew = false }: EditRowProps) {
  const first = useRef<HTMLInputElement>(null)
  useEffect(() => first.current?.focus(), [])
  const wrong = (field: string) => check.fields.get(`${id} ${field}`)
  const stored = check.stored.get(id)
  return (
    <tr class="edited">
      <td>
        <Cell
          label="Name"
          value={draft.name}
          wrong={wrong('name')}
          placeholder="www"
          input={first}
          set={(name) => put({ ...draft, name })}
        />
        <div class="soft">.{domain}; @ for the domain itself</div>
      </td>
      <td>
        {isNew ? (
          <select
            aria-label="Type"
            value={draft.type}
            onInput={(event) => put({ ...draft, type: event.currentTarget.value as Draft['type'] })}
          >
            {recordTypes.map((type) => (
              <option key={type}>{type}</option>
            ))}
          </select>
        ) : (
          draft.type
        )}
        {wrong('type') && <p class="wrong">{wrong('type')}</p>}
      </td>
      <td>
        <Cell
          label="Value"
          value={draft.value}
          wrong={wrong('value')}
          placeholder={examples[draft.type] ?? '\\# 4 C0000201'}
          set={(value) => put({ ...draft, value })}
        />
        {stored && stored !== draft.value && (
          <div class="soft">
            stored as <code>{stored}</code>
          </div>
        )}
        <Cell
          label="Note"
          value={draft.comment}
          wrong={wrong('comment')}
          placeholder="A private note, not in the DNS"
          set={(comment) => put({ ...draft, comment })}
        />
      </td>
      <td class="num">
        <Cell
          label="TTL in seconds"
          value={draft.ttl}
          wrong={wrong('ttl')}
          placeholder="300"
          narrow
          set={(ttl) => put({ ...draft, ttl })}
        />
      </td>
      <td class="actions">
        <button
          type="button"
          class="quiet"
          aria-label={isNew ? 'Undo the new record' : `Undo the change to ${draft.name} ${draft.type}`}
          onClick={undo}
        >
          Undo
        </button>
      </td>
    </tr>
  )
}

type CellProps = {
  label: string
  value: string
  wrong: string | undefined
  placeholder: string
  narrow?: boolean
  input?: preact.RefObject<HTMLInputElement | null>
  set(value: string): void
}

function Cell({ label, value, wrong, placeholder, narrow, input, set }: CellProps) {
  const id = useId()
  return (
    <div class="field">
      <input
        ref={input}
        class={narrow ? 'mono narrow' : 'mono'}
        aria-label={label}
        aria-invalid={wrong !== undefined}
        aria-describedby={wrong === undefined ? undefined : id}
        placeholder={placeholder}
        spellcheck={false}
        autocapitalize="off"
        autocomplete="off"
        value={value}
        onInput={(event) => set(event.currentTarget.value)}
      />
      {wrong !== undefined && (
        <p id={id} class="wrong">
          {wrong}
        </p>
      )}
    </div>
  )
}
