// Measures deployments from before their bytes were counted, for the accounts' totals.
import { type Artifacts, bytesOf } from '../../platform/artifacts/artifacts.ts'
import type { Database } from '../../platform/database/database.ts'
import { countBytes, findUncounted } from '../../services/deployments/index.ts'

const perRead = 100

/**
 * Returns how many were measured. Server trees that are local directories aren't, because the host opens no path that a
 * build created, so old servers count from their next deployment.
 */
export async function measureOld(db: Database, artifacts: Artifacts, signal: AbortSignal): Promise<number> {
  let measured = 0
  let ids = await findUncounted(db, '', perRead)
  while (ids.length > 0) {
    for (const id of ids) {
      signal.throwIfAborted()
      const manifest = await artifacts.read(id)
      const bytes = manifest ? (manifest.tree?.size ?? bytesOf(manifest.files)) : 0
      if (bytes > 0 && (await countBytes(db, id, bytes))) measured++
    }
    ids = await findUncounted(db, ids.at(-1)!, perRead)
  }
  return measured
}
