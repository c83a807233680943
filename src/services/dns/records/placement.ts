// Whether records may stand where they are put: beside those at their names, and among those at other names of the zone.
import { type Conflict, conflict, kindOf, namesAbove, placementConflict } from '../../../dns/conflicts.ts'
import { absoluteName, nameWithinZone } from '../../../dns/names.ts'
import type { Db } from '../../../platform/database/database.ts'
import { selectRecordsBelow, selectRecordsByName, selectRecordsPointing } from '../sql/zone-statements.ts'
import type { RecordRow, Zone } from './dns-records.ts'

/** `leaving` are the records that go, among them those before they are changed. */
export type Move = { placed: readonly RecordRow[]; leaving: readonly RecordRow[] }

export type Placement = {
  /** The records that stay, and those that were put, at a name. */
  recordsAt(name: string): readonly RecordRow[]
  /** Whether a record is in the database already. */
  isStored(row: RecordRow): boolean
  /** Puts a record to those that stay, unless it cannot be beside them. */
  put(row: RecordRow): Conflict<RecordRow> | null
  /** What is wrong when all have been put, each with the one of `placed` that it is about; null for others. */
  settle(): { row: RecordRow | null; found: Conflict<RecordRow> }[]
}

/** The records at a name. One of each kind stands for all of them, so that many take no quadratic time. */
type Place = { records: RecordRow[]; same: Map<string, RecordRow>; firstOfKind: Map<string, RecordRow> }

/** The zone is locked, or what is found out here is valid only as long as it has its serial. */
export async function placementOf(db: Db, zone: Zone, { placed, leaving }: Move): Promise<Placement> {
  const zoneId = zone.id
  const ofType = (type: string) => placed.filter((row) => row.type === type)
  const hosts = ofType('CNAME').map(({ name }) => absoluteName(name, zone.name))
  const above = ofType('DNAME').map(({ name }) => name)
  const pointing = hosts.length > 0 ? await selectRecordsPointing(db, { zoneId, hosts }) : []
  const below = above.length > 0 ? await selectRecordsBelow(db, { zoneId, above }) : []
  const cut = leaving.filter(({ type }) => type === 'NS')
  const names = new Set([...placed, ...cut, ...below].flatMap(({ name }) => [name, ...namesAbove(name)]))
  for (const { value } of [...ofType('MX'), ...pointing]) {
    const target = nameWithinZone(value.slice(value.indexOf(' ') + 1), zone.name)
    if (target !== null) names.add(target)
  }
  const rows = names.size > 0 ? await selectRecordsByName(db, { zoneId, names: [...names] }) : []
  const gone = new Set(leaving.map(({ id }) => id))
  const stored = new Set([...rows, ...pointing, ...below].map(({ id }) => id))
  const stays = ({ id }: RecordRow) => !gone.has(id)
  const places = new Map<string, Place>()
  const keyOf = ({ type, value }: RecordRow) => `${type} ${value}`
  const recordsAt = (name: string) => places.get(name)?.records ?? []
  const kindsAt = (name: string) => places.get(name)?.firstOfKind.values() ?? []

  function add(row: RecordRow): void {
    const place: Place = places.get(row.name) ?? { records: [], same: new Map(), firstOfKind: new Map() }
    places.set(row.name, place)
    place.records.push(row)
    place.same.set(keyOf(row), row)
    const kind = kindOf(row)
    if (!place.firstOfKind.has(kind)) place.firstOfKind.set(kind, row)
  }

  for (const row of rows.filter(stays)) add(row)
  return {
    recordsAt,
    isStored: ({ id }) => stored.has(id),
    put(row) {
      const { type, name, value } = row
      const same = places.get(name)?.same.get(keyOf(row))
      const found = conflict({ type, name, value }, same ? [same] : kindsAt(name))
      if (!found) add(row)
      return found
    },
    settle() {
      const delegated = cut.flatMap(({ name }) => recordsAt(name).filter(({ type }) => type === 'DS'))
      const own = new Set(placed)
      const others = [...pointing, ...below, ...delegated].filter((row) => stays(row) && !own.has(row))
      const judged = [...placed.map((row) => ({ row, it: row })), ...others.map((it) => ({ row: null, it }))]
      return judged.flatMap(({ row, it }) => {
        const found = placementConflict(it, zone.name, kindsAt)
        if (!found) return []
        // Who adds what another record cannot stand with is told of that record.
        return [{ row, found: row ? found : { ...found, kind: 'existing' as const, record: it } }]
      })
    },
  }
}

/** The first reason why records cannot be where they are put. */
export async function conflictOf(db: Db, zone: Zone, move: Move): Promise<Conflict<RecordRow> | null> {
  const placement = await placementOf(db, zone, move)
  for (const row of move.placed) {
    const found = placement.put(row)
    if (found) return found
  }
  return placement.settle()[0]?.found ?? null
}
