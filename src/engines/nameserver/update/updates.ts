// Updates of zones (RFC 2136): authenticates them, passes them to the service that the API uses, and signs the answer.
import type { Logger } from 'pino'
import { Counter, Registry } from 'prom-client'
import { rcodes, typeNumbers } from '../../../dns/packet/numbers.ts'
import { fudgeSeconds } from '../../../dns/packet/tsig.ts'
import { wireName } from '../../../dns/packet/wire-names.ts'
import type { Database } from '../../../platform/database/database.ts'
import { applyUpdate } from '../../../services/dns/index.ts'
import type { ZoneKey, ZoneKeys } from '../answer/keys.ts'
import { refusal } from '../answer/messages.ts'
import { type Authenticated, authenticate } from '../answer/signed.ts'
import type { TransferRequest } from '../answer/transfers.ts'
import type { ZoneTable } from '../zones/zone-table.ts'
import { decodeUpdate, readZone, UpdateFault } from './decode.ts'
import { createTurns, type TurnLimits } from './turns.ts'

/** Handles every message with the opcode UPDATE, and answers it. */
export type Updates = { handle(request: TransferRequest): Promise<void> }

export type UpdatesOptions = {
  keys: Pick<ZoneKeys, 'find'>
  table: Pick<ZoneTable, 'find'>
  db: Database
  /** Updates per minute by one key, and by all keys of an account. */
  perMinute: { key: number; account: number }
  log: Logger
  registry?: Registry
  turns?: TurnLimits
  /** Unix time in seconds. */
  now?: () => number
}

// An update uses a connection for some milliseconds; waiting ones cost the memory of their message.
const defaultTurns: TurnLimits = { atOnce: 4, waiting: 200, waitingPerZone: 20 }

const rcodeNames = new Map<number, string>(Object.entries(rcodes).map(([name, number]) => [number, name]))

export function createUpdates(options: UpdatesOptions): Updates {
  const { keys, table, db, log, now = () => Math.floor(Date.now() / 1000) } = options
  const inTurn = createTurns(options.turns ?? defaultTurns)
  const isAllowed = createLimit(options.perMinute, now)
  const answered = new Counter({
    name: 'berth_nameserver_updates_total',
    help: 'Signed updates of zones (RFC 2136), by the code they were answered with.',
    labelNames: ['rcode'],
    registers: [options.registry ?? new Registry()],
  })

  /** Refuses a zone that is served here but belongs to another key; any other zone isn't ours to update. */
  function refuseOther(zone: string): never {
    const origin = wireName(zone)
    throw new UpdateFault(table.find(origin, typeNumbers.SOA)?.origin === origin ? rcodes.REFUSED : rcodes.NOTAUTH)
  }

  async function outcomeOf({ message }: TransferRequest, { key, tsig }: Authenticated<ZoneKey>): Promise<number> {
    const { zone } = readZone(message)
    if (zone !== key.zone) refuseOther(zone)
    if (key.purpose !== 'update' || !isAllowed(key)) return rcodes.REFUSED
    const wanted = decodeUpdate(message, tsig.start)
    // Twice as long as the signature is accepted here, because the clocks of other nameservers may be late.
    const expiresAt = new Date((tsig.timeSigned + 2 * fudgeSeconds) * 1000)
    const work = () => applyUpdate(db, { ...wanted, keyId: key.id, mac: tsig.mac, expiresAt })
    const done = inTurn(key.domainId, work)
    return done ? rcodes[await done] : rcodes.SERVFAIL
  }

  async function settle(request: TransferRequest, authenticated: Authenticated<ZoneKey>): Promise<number> {
    try {
      return await outcomeOf(request, authenticated)
    } catch (err) {
      if (err instanceof UpdateFault) return err.rcode
      log.warn({ err, key: authenticated.key.id }, 'an update could not be done')
      return rcodes.SERVFAIL
    }
  }

  return {
    async handle(request) {
      const authenticated = await authenticate(request, keys.find, now)
      if (!authenticated) return
      const rcode = await settle(request, authenticated)
      answered.inc({ rcode: rcodeNames.get(rcode) ?? `${rcode}` })
      await request.send(authenticated.sign(refusal(request.message, request.query, rcode)))
    },
  }
}

/** Counts the updates of the current minute; only known keys are counted. */
function createLimit({ key, account }: UpdatesOptions['perMinute'], now: () => number) {
  const counts = new Map<string, number>()
  let minute = 0
  const take = (id: string, max: number) => {
    const count = (counts.get(id) ?? 0) + 1
    counts.set(id, count)
    return count <= max
  }
  return ({ id, accountId }: ZoneKey): boolean => {
    const current = Math.floor(now() / 60)
    if (current !== minute) counts.clear()
    minute = current
    return take(id, key) && take(accountId, account)
  }
}
