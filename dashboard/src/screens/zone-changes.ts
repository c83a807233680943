// Pending changes to a zone, checked by a dry run of the API while you type.
import { useEffect, useMemo, useState } from 'preact/hooks'
import { BerthError, type Call, call, fieldErrors, type Schemas } from '../kit/index.ts'

export type DnsRecord = Schemas['DnsRecord']
export type Draft = { type: DnsRecord['type']; name: string; value: string; ttl: string; comment: string }
type Change = {
  key: string /** Null: a new record. */
  before: DnsRecord | null /** Null: it is deleted. */
  draft: Draft | null
}
export type Changes = readonly Change[]
type Batch = Schemas['ChangeDnsRecords']
type Result = Schemas['DnsBatchResult']

export const draftOf = ({ type, name, value, ttl, comment }: DnsRecord): Draft => ({
  type,
  name,
  value,
  ttl: String(ttl),
  comment: comment ?? '',
})

const integer = (text: string) => (/^\d+$/.test(text.trim()) ? Number(text) : (text as unknown as number))

function differences(before: DnsRecord, draft: Draft) {
  const old = draftOf(before)
  return {
    ...(draft.name !== old.name && { name: draft.name }),
    ...(draft.value !== old.value && { value: draft.value }),
    ...(draft.ttl !== old.ttl && { ttl: integer(draft.ttl) }),
    ...(draft.comment !== old.comment && { comment: draft.comment || null }),
  }
}

const isNew = ({ before }: Change) => before === null
const isDeleted = ({ before, draft }: Change) => before !== null && draft === null
const isChanged = ({ before, draft }: Change) =>
  before !== null && draft !== null && Object.keys(differences(before, draft)).length > 0

/** The body of the batch, and the change behind each of its operations. */
function batchOf(changes: Changes): { body: Batch; keys: Map<string, string> } {
  const [created, updated, deleted] = [changes.filter(isNew), changes.filter(isChanged), changes.filter(isDeleted)]
  const keys = new Map<string, string>()
  for (const [name, list] of Object.entries({ create: created, update: updated, delete: deleted }))
    for (const [index, { key }] of list.entries()) keys.set(`${name}/${index}`, key)
  const body: Batch = {
    ...(deleted.length > 0 && { delete: deleted.map(({ before }) => before!.id) }),
    ...(updated.length > 0 && {
      update: updated.map(({ before, draft }) => ({ id: before!.id, ...differences(before!, draft!) })),
    }),
    ...(created.length > 0 && {
      create: created.map(({ draft }) => {
        const { type, name, value, ttl, comment } = draft!
        return { type, name, value, ttl: integer(ttl), ...(comment && { comment }) }
      }),
    }),
  }
  return { body, keys }
}

export type Check = {
  /** By the key of a change and the field: `3 value`. */
  fields: ReadonlyMap<string, string>
  /** An error that concerns no field, such as a quota. */
  error: unknown
  /** New values as they will be stored, by the key of the change. */
  stored: ReadonlyMap<string, string>
  checked: boolean
}
const unknown: Check = { fields: new Map(), error: null, stored: new Map(), checked: false }

function checkOf(error: unknown, keys: ReadonlyMap<string, string>): Check {
  const fields = new Map<string, string>()
  for (const [pointer, detail] of fieldErrors(error)) {
    const [name, index, field = 'value'] = pointer.split('/')
    const key = keys.get(`${name}/${index}`)
    if (key !== undefined) fields.set(`${key} ${field}`, detail)
  }
  const placed = error instanceof BerthError && error.errors.length > 0 && fields.size > 0
  return { ...unknown, fields, error: placed ? null : error, checked: true }
}

const typingMs = 250

/** Checks again when `version` changes, for example after someone else's change. */
export function useChanges(domain: string, version: unknown) {
  const [changes, setChanges] = useState<Changes>([])
  const [check, setCheck] = useState<Check>(unknown)
  const { body, keys } = useMemo(() => batchOf(changes), [changes])
  const count = keys.size
  const batch = (dryRun: boolean): Call<Result> =>
    call('post', '/dns/{domain}/records/batch', {
      params: { path: { domain }, query: dryRun ? { dryRun } : {} },
      body,
    })
  useEffect(() => {
    setCheck((before) => ({ ...before, checked: false }))
    // Fields that are still empty aren't wrong yet.
    if (count === 0 || changes.some(({ draft }) => draft && (draft.value === '' || draft.name === '')))
      return setCheck(unknown)
    const controller = new AbortController()
    const timer = setTimeout(() => {
      batch(true)
        .send(controller.signal)
        .then(
          ({ created }) => {
            const added = changes.filter(isNew)
            const stored = new Map(added.map(({ key }, index) => [key, created[index]?.value ?? '']))
            setCheck({ ...unknown, stored, checked: true })
          },
          (error) => controller.signal.aborted || setCheck(checkOf(error, keys)),
        )
    }, typingMs)
    return () => {
      clearTimeout(timer)
      controller.abort()
    }
  }, [JSON.stringify(body), version])
  const put = (change: Change) =>
    setChanges((all) =>
      all.some(({ key }) => key === change.key)
        ? all.map((it) => (it.key === change.key ? change : it))
        : [...all, change],
    )
  return {
    changes,
    check,
    count,
    call: count > 0 ? batch(false) : null,
    of: (key: string) => changes.find((change) => change.key === key),
    put,
    drop: (key: string) => setChanges((all) => all.filter((change) => change.key !== key)),
    clear: () => setChanges([]),
  }
}
