// Caches the environment and network of each server, so that it can start while the database is unavailable.
import { maxAgeMs, type Snapshots } from '../../../platform/database/snapshots.ts'
import type { Network } from '../../../services/deployments/index.ts'

/** The project's variables, which are masked in logs, and the platform's (BERTH_URL and others), which are not. */
export type ServerSettings = {
  environment: Record<string, string>
  network: Network
  /** A shell command, run in the deployment's tree. Default: `npm start`. */
  command?: string
  /** The account, for sharing the limit of servers on demand. */
  owner?: string
}

export type ServerEnvironment = ServerSettings & { secrets: string[] }

export type Environments = {
  read(deploymentId: string): Promise<ServerEnvironment>
  /** The owner in the cached settings. */
  ownerOf(deploymentId: string): string | undefined
  forget(deploymentId: string): void
  close(): Promise<void>
}

/** `atMs` is when an earlier process read the settings; null if this process uses them. */
type CachedSettings = { settings: ServerSettings; atMs: number | null }
type SnapshotRow = { deploymentId: string; settings: ServerSettings; atMs: number }

// Set by the platform and not secret. Masking them would hide the site's own URL in every log line.
const platformNames = new Set(
  'NODE_ENV PORT HOST CI PATH HOME BERTH_URL BERTH_COMMIT BERTH_REF BERTH_ENV BERTH_REGION'.split(' '),
)
const readTimeoutMs = 5_000

/** With `snapshots`, the cache survives restarts. */
export function createEnvironments(
  settingsOf: (deploymentId: string) => Promise<ServerSettings>,
  snapshots?: Snapshots,
): Environments {
  const cache = new Map<string, CachedSettings>()
  const store = snapshots?.open('servers', function* (): Generator<SnapshotRow> {
    for (const [deploymentId, { settings, atMs }] of cache) yield { deploymentId, settings, atMs: atMs ?? Date.now() }
  })
  const loaded = load()

  async function load(): Promise<void> {
    for (const { deploymentId, settings, atMs } of (await store?.read<SnapshotRow>()) ?? []) {
      // Entries expire, because nobody reports servers that were stopped for good while no runner ran.
      if (Date.now() - atMs < maxAgeMs) cache.set(deploymentId, { settings, atMs })
    }
  }

  async function readSettings(deploymentId: string): Promise<ServerSettings> {
    const late = Promise.withResolvers<never>()
    const timer = setTimeout(
      () => late.reject(new Error('The variables of the project could not be read.')),
      readTimeoutMs,
    )
    try {
      const settings = await Promise.race([settingsOf(deploymentId), late.promise])
      store?.current()
      return settings
    } finally {
      clearTimeout(timer)
    }
  }

  return {
    async read(deploymentId) {
      await loaded
      const settings = await readSettings(deploymentId).catch((error) => {
        const old = cache.get(deploymentId)
        if (old) return old.settings
        throw error
      })
      cache.set(deploymentId, { settings, atMs: null })
      store?.changed()
      const secrets = Object.entries(settings.environment).flatMap(([name, value]) =>
        platformNames.has(name) ? [] : [value],
      )
      return { ...settings, secrets }
    },
    ownerOf: (deploymentId) => cache.get(deploymentId)?.settings.owner,
    forget(deploymentId) {
      if (cache.delete(deploymentId)) store?.changed()
    },
    async close() {
      await loaded
      await store?.close()
    },
  }
}
