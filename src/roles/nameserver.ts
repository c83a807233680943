// The nameserver role: answers DNS over UDP and TCP, and transfers zones to secondaries.
import { availableParallelism } from 'node:os'
import { createLagStore, createNameserver, createTransfers } from '../engines/nameserver/index.ts'
import { recordKeyUse } from '../services/dns/index.ts'
import type { Closing } from './opening/closing.ts'
import type { Shared } from './opening/shared.ts'

/** `alone`: without other roles in this process. */
export async function openNameserver(shared: Shared, closing: Closing, alone: boolean): Promise<void> {
  const { config, db, health, log, registry } = shared
  const { nameserverTsig: key, nameserverSecondaries: secondaries } = config
  const onKeyUsed = (id: string) =>
    void recordKeyUse(db, id).catch((err) => log.warn({ err }, 'the use of a key could not be noted'))
  const nameserver = createNameserver({
    ...shared,
    // With other roles in the process, the processors are shared, so threads would only cost memory.
    workers: config.nameserverWorkers ?? (alone ? availableParallelism() : 0),
    transfers(snapshot, outside, keys) {
      const lags = createLagStore(db, snapshot.table)
      return createTransfers({ snapshot, outside, key, keys, secondaries, log, registry, lags, onKeyUsed })
    },
  })
  await nameserver.listen()
  closing.add(() => nameserver.close())
  const silent = 'The nameserver has not answered a query of its own yet.'
  health.add('nameserver', async () => ((await nameserver.answers()) ? null : silent), ['nameserver'])
}
