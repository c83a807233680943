// The environment and network of each server, kept so that it can start while the database is unavailable.
import { maxAgeMs, type Snapshots } from '../../../platform/database/snapshots.ts'
import type { Network } from '../../../services/deployments/index.ts'

/** The project's variables, masked in logs, with those of the platform (BERTH_URL …), which are not. */
export type ServerSettings = {
  environment: Record<string, string>
  network: Network
  /** Run by a shell in the deployment's tree; `npm start` if left out. */
  command?: string
  /** The account, by which places are shared. */
  owner?: string
}

export type ServerEnvironment = ServerSettings & { secrets: string[] }

export type Environments = {
  read(deploymentId: string): Promise<ServerEnvironment>
  /** As it was read last. */
  ownerOf(deploymentId: string): string | undefined
  forget(deploymentId: string): void
  close(): Promise<void>
}

/** `atMs`: when it was read by an earlier process; null if it is in use in this one. */
type Known = { settings: ServerSettings; atMs: number | null }
type KeptRow = { deploymentId: string; settings: ServerSettings; atMs: number }

// Set by the platform, so not secret. If they were masked, every line with the site's own URL would be unreadable.
const platformNames = new Set(
  'NODE_ENV PORT HOST CI PATH HOME BERTH_URL BERTH_COMMIT BERTH_REF BERTH_ENV BERTH_REGION'.split(' '),
)
const readMs = 5_000

/** With `snapshots`, what was read outlives the process. */
export function createEnvironments(
  settingsOf: (deploymentId: string) => Promise<ServerSettings>,
  snapshots?: Snapshots,
): Environments {
  const known = new Map<string, Known>()
  const kept = snapshots?.open('servers', function* (): Generator<KeptRow> {
    for (const [deploymentId, { settings, atMs }] of known) yield { deploymentId, settings, atMs: atMs ?? Date.now() }
  })
  const loaded = load()

  async function load(): Promise<void> {
    for (const { deploymentId, settings, atMs } of (await kept?.read<KeptRow>()) ?? []) {
      // Nobody tells of a server that was stopped for good while no runner ran.
      if (Date.now() - atMs < maxAgeMs) known.set(deploymentId, { settings, atMs })
    }
  }

  async function fresh(deploymentId: string): Promise<ServerSettings> {
    const late = Promise.withResolvers<never>()
    const timer = setTimeout(() => late.reject(new Error('The variables of the project could not be read.')), readMs)
    try {
      const settings = await Promise.race([settingsOf(deploymentId), late.promise])
      kept?.current()
      return settings
    } finally {
      clearTimeout(timer)
    }
  }

  return {
    async read(deploymentId) {
      await loaded
      const settings = await fresh(deploymentId).catch((error) => {
        const old = known.get(deploymentId)
        if (old) return old.settings
        throw error
      })
      known.set(deploymentId, { settings, atMs: null })
      kept?.changed()
      const secrets = Object.entries(settings.environment).flatMap(([name, value]) =>
        platformNames.has(name) ? [] : [value],
      )
      return { ...settings, secrets }
    },
    ownerOf: (deploymentId) => known.get(deploymentId)?.settings.owner,
    forget(deploymentId) {
      if (known.delete(deploymentId)) kept?.changed()
    },
    async close() {
      await loaded
      await kept?.close()
    },
  }
}
