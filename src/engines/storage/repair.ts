// Repairs damaged files from another copy, or with a job that rebuilds a deployment that has the file.
import type { Logger } from 'pino'
import { enqueue } from '../../jobs/queue.ts'
import type { Artifacts } from '../../platform/artifacts/artifacts.ts'
import { blobName, type Encoding } from '../../platform/artifacts/blobs.ts'
import type { Database } from '../../platform/database/database.ts'
import { findServed } from '../../services/deployments/index.ts'
import { markLost } from '../../services/uploads/index.ts'
import { readManifests } from './references.ts'

export type RepairOptions = { db: Database; artifacts: Artifacts; log: Logger }

// An unsuccessful rebuild isn't repeated more often.
const retryMs = 24 * 3600_000
// The newest deployments with the file, which are rebuilt until one restores it.
const maxDeployments = 5

export async function repairDamaged({ db, artifacts, log }: RepairOptions, signal: AbortSignal): Promise<void> {
  const blobs = new Map<string, string[]>()
  for (const name of await artifacts.damaged()) {
    signal.throwIfAborted()
    const [, hash, encoding] = blobName.exec(name) ?? []
    const isWhole = hash
      ? await artifacts.repair(hash, encoding as Encoding | undefined)
      : (await artifacts.read(name, { fresh: true })) !== null
    if (isWhole) await settle(name, 'a damaged file is repaired')
    else if (!(await isDue(name))) continue
    else if (hash) blobs.set(hash, [...(blobs.get(hash) ?? []), name])
    else await repair(name, undefined, [name])
  }
  if (blobs.size === 0) return
  const owners = new Map<string, string[]>()
  await readManifests(artifacts, signal, (hash, deploymentId) => {
    if (!blobs.has(hash)) return
    const known = owners.get(hash) ?? []
    // Ids sort by time.
    owners.set(hash, [...new Set([...known, deploymentId])].sort().reverse().slice(0, maxDeployments))
  })
  for (const [hash, names] of blobs) for (const name of names) await repair(name, hash, owners.get(hash) ?? [])

  async function settle(name: string, how: string): Promise<void> {
    await artifacts.clearReport(name)
    log.info({ file: name }, how)
  }

  /** The entry's note is the time of the last job; empty before the first one. */
  async function isDue(name: string): Promise<boolean> {
    const lastJobMs = Date.parse(await artifacts.readNote(name))
    return Number.isNaN(lastJobMs) || Date.now() - lastJobMs >= retryMs
  }

  async function repair(name: string, hash: string | undefined, deploymentIds: string[]): Promise<void> {
    const served = await findServed(db, deploymentIds)
    const ready = deploymentIds.filter((id) => served.get(id) === 'READY')
    // Only a new deployment of the same files could need it, and would upload it again. The sweep removes the rest.
    if (ready.length === 0) {
      const wasSource = name === hash && (await markLost(db, [hash]))
      const what = wasSource
        ? 'will be uploaded again by the next deployment that has it'
        : 'is not needed by any deployment'
      return settle(name, `a damaged file ${what}`)
    }
    log.error({ file: name, deploymentIds: ready }, 'a file of these deployments is damaged; one of them is rebuilt')
    await enqueue(db, { kind: 'repair', key: hash ?? name, payload: { hash, deploymentIds: ready } })
    await artifacts.writeNote(name, new Date().toISOString())
  }
}
