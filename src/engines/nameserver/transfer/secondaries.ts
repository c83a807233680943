// Notifies secondaries of new versions of zones until they serve them: our own of every zone, customers' of theirs.
import type { Logger } from 'pino'
import { listenAddress } from '../../../dns/listen-address.ts'
import type { TsigKey } from '../../../dns/packet/tsig.ts'
import type { Rrset } from '../zones/zone.ts'
import type { LagStore, LagSummary } from './lag.ts'
import { createNotifier, type NotifierOptions } from './notify.ts'
import { createWatch, type WatchOptions } from './watch.ts'

/** A customer's secondary: `address:port`, and the key that signs its notices. */
export type CustomerSecondary = { address: string; key: TsigKey }

export type Secondaries = {
  /** Call when a zone has a new version, or is there at startup. */
  notify(origin: string, why: 'changed' | 'start'): void
  forget(origin: string): void
  /** Call when a version was sent to the host at this address. */
  sent(origin: string, address: string, serial: number): void
  lags(): LagSummary[]
  close(): Promise<void>
}

export type SecondariesOptions = {
  /** Null if the platform has no secondaries. */
  key: TsigKey | null
  /** `address:port` */
  secondaries: readonly string[]
  customersOf(origin: string): CustomerSecondary[]
  catalog: string
  /** Both return null for a zone that is gone. */
  soaOf(origin: string): Rrset | null
  serialOf(origin: string): number | null
  onEnd(result: 'acknowledged' | 'lost'): void
  store?: LagStore | undefined
  /** For tests. */
  delaysMs?: WatchOptions['delaysMs']
  retryDelaysMs?: NotifierOptions['retryDelaysMs']
  log: Logger
  now: () => number
}

export function createSecondaries(options: SecondariesOptions): Secondaries {
  const { key, customersOf, catalog, soaOf, serialOf, onEnd, store, delaysMs, retryDelaysMs, log, now } = options
  const own = key ? options.secondaries.map((address) => ({ address, key, ...listenAddress(address) })) : []
  /** Zones that have changed since startup. */
  const changed = new Set<string>()
  const notifier = createNotifier({
    soaOf,
    onEnd(result, _tries, { origin, secondary }) {
      onEnd(result)
      watch.noticed(origin, secondary, { acknowledged: result === 'acknowledged', changed: changed.has(origin) })
    },
    log,
    now,
    ...(retryDelaysMs && { retryDelaysMs }),
  })
  const secondariesOf = (origin: string) => [
    ...own,
    ...(origin === catalog ? [] : customersOf(origin)).map(({ address, key }) => ({
      address,
      key,
      ...listenAddress(address),
    })),
  ]
  const watch = createWatch({
    secondaries: own,
    isNotified: (origin, address) => secondariesOf(origin).some((one) => one.address === address),
    catalog,
    serialOf,
    notify(origin, address) {
      const secondary = secondariesOf(origin).find((one) => one.address === address)
      if (secondary) notifier.notify(origin, secondary)
    },
    store,
    log,
    ...(delaysMs && { delaysMs }),
  })
  return {
    notify(origin, why) {
      if (why === 'changed') changed.add(origin)
      for (const secondary of secondariesOf(origin)) notifier.notify(origin, secondary)
    },
    forget: (origin) => void changed.delete(origin),
    sent: (origin, address, serial) => watch.sent(origin, address.replace(/^::ffff:/, ''), serial),
    lags: watch.lags,
    async close() {
      watch.close()
      await notifier.close()
    },
  }
}
