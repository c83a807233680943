// Tracks which zones are served, and their previous versions, because a snapshot only reports that they changed.

import { typeNumbers } from '../../../dns/packet/numbers.ts'
import { wireName } from '../../../dns/packet/wire-names.ts'
import type { Snapshot } from '../load/snapshot.ts'
import type { ZoneSource } from '../zones/zone-table.ts'

export type ZoneChange = { origin: string; before: ZoneSource | null; after: ZoneSource | null }

export type ServedZones = { readonly zones: ReadonlyMap<string, ZoneSource>; close(): void }

// Scanning 100,000 zones takes some 100 ms, too long for every change of a subdomain.
const rescanMs = 250

export function followZones(snapshot: Snapshot, onChange: (changes: ZoneChange[]) => void): ServedZones {
  const { table } = snapshot
  const zones = new Map<string, ZoneSource>()
  for (const source of table.served()) zones.set(source.origin, source)
  let timer: NodeJS.Timeout | null = null

  function look(origins: Iterable<string>): void {
    const changes: ZoneChange[] = []
    for (const origin of origins) {
      const before = zones.get(origin) ?? null
      const found = table.find(origin, typeNumbers.SOA)
      const after = found?.origin === origin ? found : null
      if (before === after) continue
      if (after) zones.set(origin, after)
      else zones.delete(origin)
      changes.push({ origin, before, after })
    }
    if (changes.length > 0) onChange(changes)
  }

  function rescan(): void {
    timer = null
    const origins = new Set(zones.keys())
    for (const source of table.served()) if (zones.get(source.origin) !== source) origins.add(source.origin)
    look(origins)
  }

  const off = [
    snapshot.onChange((names) => look(names.map(wireName))),
    snapshot.onMoved(() => {
      timer ??= setTimeout(rescan, rescanMs)
    }),
  ]
  return {
    zones,
    close() {
      for (const stop of off) stop()
      if (timer) clearTimeout(timer)
    },
  }
}
