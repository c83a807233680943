// Stores lags of secondaries in the database, as rows and events of the zones' owners.
import { textName, wireName } from '../../../dns/packet/wire-names.ts'
import type { Database } from '../../../platform/database/database.ts'
import {
  beginLag,
  deleteLag,
  endLag,
  knownLags,
  platformIds,
  recordSecondaryCheck,
} from '../../../services/dns/index.ts'
import type { ZoneTable } from '../zones/zone-table.ts'
import type { LagStore } from './lag.ts'

/** The platform's own zones have no owner; the metrics count their lags. */
export function createLagStore(db: Database, table: ZoneTable): LagStore {
  function idOf(origin: string): string | null {
    const id = table.get(textName(origin))?.id
    return id === undefined || id.startsWith(platformIds) ? null : id
  }
  return {
    async begin({ origin, ...lag }) {
      const zoneId = idOf(origin)
      if (zoneId !== null) await beginLag(db, { zoneId, ...lag })
    },
    async end({ origin, secondary }) {
      const zoneId = idOf(origin)
      if (zoneId !== null) await endLag(db, zoneId, secondary)
    },
    async checked({ origin, ...check }) {
      const zoneId = idOf(origin)
      if (zoneId !== null) await recordSecondaryCheck(db, { zoneId, ...check })
    },
    async forget({ origin, secondary }) {
      const zoneId = idOf(origin)
      if (zoneId !== null) await deleteLag(db, zoneId, secondary)
    },
    async known() {
      const found = await knownLags(db)
      return found.map(({ zone, ...lag }) => ({ origin: wireName(zone), ...lag }))
    },
  }
}
