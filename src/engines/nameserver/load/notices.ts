// NOTIFY from primaries of zones that follow them (RFC 1996): those zones are checked soon. A forged NOTIFY only causes
// another query for the primary's serial, and at a limited rate.
import type { Logger } from 'pino'
import { rcodes, typeNumbers } from '../../../dns/packet/numbers.ts'
import { wireName } from '../../../dns/packet/wire-names.ts'
import type { Database } from '../../../platform/database/database.ts'
import { handleNotify } from '../../../services/dns/index.ts'
import { refusal } from '../answer/messages.ts'
import type { TransferRequest, Transfers } from '../answer/transfers.ts'
import { readZone, UpdateFault } from '../update/decode.ts'
import type { ZoneTable } from '../zones/zone-table.ts'

export type NoticesOptions = {
  table: Pick<ZoneTable, 'find'>
  db: Database
  /** Handles messages that no zone here is waiting for. */
  transfers: Transfers | null
  log: Logger
  /** Database queries per second, in total and per zone. */
  perSecond?: { all: number; zone: number }
}

const authoritative = 0x04

export function createNotices({ table, db, transfers, log, perSecond }: NoticesOptions): Transfers {
  const isAllowed = createLimit(perSecond ?? { all: 20, zone: 2 })

  function zoneOf({ message }: TransferRequest): string | null {
    try {
      const { zone } = readZone(message)
      const origin = wireName(zone)
      return table.find(origin, typeNumbers.SOA)?.origin === origin ? zone : null
    } catch (error) {
      if (error instanceof UpdateFault) return null
      throw error
    }
  }

  async function isTaken(zone: string, address: string): Promise<boolean> {
    try {
      return await handleNotify(db, zone, address)
    } catch (err) {
      log.warn({ err }, 'a NOTIFY could not be noted')
      return false
    }
  }

  return {
    async handle(request) {
      const zone = zoneOf(request)
      const taken = zone !== null && isAllowed(zone) && (await isTaken(zone, request.peer.address))
      if (!taken) {
        const refused = () => request.refuse(refusal(request.message, request.query, rcodes.NOTIMP))
        return transfers ? transfers.handle(request) : refused()
      }
      const answer = refusal(request.message, request.query, rcodes.NOERROR)
      answer[2] = answer[2]! | authoritative
      await request.send(answer)
    },
  }
}

function createLimit({ all, zone: ofZone }: { all: number; zone: number }): (zone: string) => boolean {
  const counts = new Map<string, number>()
  let second = 0
  let total = 0
  return (zone) => {
    const now = Math.floor(Date.now() / 1_000)
    if (now !== second) {
      counts.clear()
      total = 0
    }
    second = now
    const count = (counts.get(zone) ?? 0) + 1
    if (count > ofZone || total >= all) return false
    counts.set(zone, count)
    total++
    return true
  }
}
