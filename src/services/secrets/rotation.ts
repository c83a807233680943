// Re-seals every stored secret with the present key, beside a running platform: in batches, and as often as one likes.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Database } from '../../platform/database/database.ts'
import type { Vault } from '../../platform/secrets/secrets.ts'
import { type SealedColumn, type SealedKey, sealedColumns } from './statements.ts'

export type ColumnRotation = {
  /** Table and column. */
  name: string
  resealed: number
  /** Keys of the rows whose values no key opens. */
  unopened: string[]
  /** Changed by somebody else all the time. */
  busy: number
}

export type Rotation = {
  columns: ColumnRotation[]
  /** Keys that nothing is sealed with any more, and that may be dropped. */
  dropped: string[]
}

const batchSize = 100
// Small pauses leave the database to those who work with it.
const pauseMs = 5
const passes = 5
const passPauseMs = 200

type Row = SealedKey & { sealed: Uint8Array }

/** Opens and seals again; without what cannot be opened, whose keys are added to `unopened`. */
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

/** One walk over a column. `left` is how many values were locked or changed meanwhile. */
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
    const walked = await pass(db, vault, column)
    resealed += walked.resealed
    if (walked.left === 0 || round === passes) {
      return { name: column.name, resealed, unopened: walked.unopened, busy: walked.left }
    }
    await sleep(passPauseMs)
  }
}

export const isComplete = ({ columns }: Rotation) =>
  columns.every(({ unopened, busy }) => unopened.length === 0 && busy === 0)

/** May be interrupted and repeated. Two at once share the work: a value is replaced only while it is as it was read. */
export async function rotateSecrets(
  db: Database,
  vault: Vault,
  tell: (column: ColumnRotation) => void,
): Promise<Rotation> {
  const columns: ColumnRotation[] = []
  for (const column of sealedColumns) {
    const rotated = await rotateColumn(db, vault, column)
    columns.push(rotated)
    tell(rotated)
  }
  const rotation = { columns, dropped: [] }
  if (!isComplete(rotation)) return rotation
  const others = { id: { not: vault.keyId } }
  const keys = await db.sealingKey.findMany({ where: others, select: { id: true } })
  await db.sealingKey.deleteMany({ where: { id: { in: keys.map(({ id }) => id) } } })
  return { columns, dropped: keys.map(({ id }) => id) }
}

export type KeyUse = { keyId: string | null; values: number; known: boolean }

/** How many values are sealed with which key; without a key id, those from before there were any. */
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
