// Reseals every stored secret with the current key, in batches, while the platform runs. It can be repeated.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Database } from '../../platform/database/database.ts'
import type { Vault } from '../../platform/secrets/secrets.ts'
import { type SealedColumn, type SealedKey, sealedColumns } from './statements.ts'

export type ColumnRotation = {
  /** Table and column. */
  name: string
  resealed: number
  /** Primary keys of the rows whose values no key opens. */
  unopened: string[]
  /** Number of values that kept changing during the rotation. */
  busy: number
}

export type Rotation = {
  columns: ColumnRotation[]
  /** Keys that no longer seal anything and can be dropped. */
  dropped: string[]
}

const batchSize = 100
// Short pauses leave the database to other work.
const pauseMs = 5
const passes = 5
const passPauseMs = 200

type Row = SealedKey & { sealed: Uint8Array }

/** Reseals values. Adds the primary keys of those that can't be opened to `unopened`. */
function reseal(vault: Vault, place: SealedColumn['place'], rows: Row[], unopened: string[]) {
  return rows.flatMap(({ first, second, third, sealed: before }) => {
    try {
      const at = place(first, second)
      return [{ first, second, third, before, sealed: vault.seal(vault.open(before, at), at) }]
    } catch {
      unopened.push([first, second, third].filter((key) => key !== '').join(' '))
      return []
    }
  })
}

/** One pass over a column. `left` is the number of values that were locked or changed in the meantime. */
async function pass(db: Database, vault: Vault, column: SealedColumn) {
  const unopened: string[] = []
  let resealed = 0
  let left = 0
  for (let after: SealedKey = { first: '', second: '', third: '' }; ; await sleep(pauseMs)) {
    const rows = await column.readStale(db, {
      header: vault.header,
      afterFirst: after.first,
      afterSecond: after.second,
      afterThird: after.third,
      limit: batchSize,
    })
    if (rows.length === 0) return { resealed, left, unopened }
    after = rows.at(-1)!
    const due = reseal(vault, column.place, rows, unopened)
    const done = await column.replace(db, {
      first: due.map(({ first }) => first),
      second: due.map(({ second }) => second),
      third: due.map(({ third }) => third),
      before: due.map(({ before }) => before),
      sealed: due.map(({ sealed }) => sealed),
    })
    resealed += done.length
    left += due.length - done.length
  }
}

async function rotateColumn(db: Database, vault: Vault, column: SealedColumn): Promise<ColumnRotation> {
  let resealed = 0
  for (let round = 1; ; round++) {
    const result = await pass(db, vault, column)
    resealed += result.resealed
    if (result.left === 0 || round === passes) {
      return { name: column.name, resealed, unopened: result.unopened, busy: result.left }
    }
    await sleep(passPauseMs)
  }
}

export const isComplete = ({ columns }: Rotation) =>
  columns.every(({ unopened, busy }) => unopened.length === 0 && busy === 0)

/** Can be interrupted, repeated and run concurrently: a value is replaced only if it is unchanged since it was read. */
export async function rotateSecrets(
  db: Database,
  vault: Vault,
  onColumn: (column: ColumnRotation) => void,
): Promise<Rotation> {
  const columns: ColumnRotation[] = []
  for (const column of sealedColumns) {
    const rotated = await rotateColumn(db, vault, column)
    columns.push(rotated)
    onColumn(rotated)
  }
  const rotation = { columns, dropped: [] }
  if (!isComplete(rotation)) return rotation
  const others = { id: { not: vault.keyId } }
  const keys = await db.sealingKey.findMany({ where: others, select: { id: true } })
  await db.sealingKey.deleteMany({ where: { id: { in: keys.map(({ id }) => id) } } })
  return { columns, dropped: keys.map(({ id }) => id) }
}

export type KeyUse = { keyId: string | null; values: number; known: boolean }

/** Counts sealed values by key. `keyId` is null for values from before key ids existed. */
export async function countSealed(db: Database, vault: Vault): Promise<KeyUse[]> {
  const counts = new Map<string | null, number>()
  for (const { countByHeader } of sealedColumns) {
    for (const { header, count } of await countByHeader(db, { length: vault.header.length })) {
      const id = header.length === 1 ? null : Buffer.from(header.subarray(1)).toString('hex')
      counts.set(id, (counts.get(id) ?? 0) + Number(count))
    }
  }
  return [...counts].map(([keyId, values]) => ({ keyId, values, known: keyId === null || vault.knows(keyId) }))
}
