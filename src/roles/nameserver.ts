// The nameserver role: answers DNS over UDP and TCP, and transfers zones to secondaries.
import { availableParallelism } from 'node:os'
import { createNameserver, createTransfers } from '../engines/nameserver/index.ts'
import type { Closing } from './closing.ts'
import type { Shared } from './shared.ts'

/** `alone`: without other roles in this process. */
export async function openNameserver(shared: Shared, closing: Closing, alone: boolean): Promise<void> {
  const { config, log, registry } = shared
  const { nameserverTsig: key, nameserverSecondaries: secondaries } = config
  const nameserver = createNameserver({
    ...shared,
    resolvers: config.dnsResolvers,
    // With other roles in the process, the processors are shared, so threads would only cost memory.
    workers: config.nameserverWorkers ?? (alone ? availableParallelism() : 0),
    ...(key && {
      transfers: (snapshot, outside) => createTransfers({ snapshot, outside, key, secondaries, log, registry }),
    }),
  })
  await nameserver.listen()
  closing.add(() => nameserver.close())
}
