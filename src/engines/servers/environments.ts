// The environment and network of each server, cached so that it can restart while the database is unavailable.
import type { Network } from '../../services/deployments/builds.ts'

/** The project's variables, masked in logs, with those of the platform (BERTH_URL …), which are not. */
export type ServerSettings = { environment: Record<string, string>; network: Network }

export type ServerEnvironment = ServerSettings & { secrets: string[] }

export type Environments = {
  read(deploymentId: string): Promise<ServerEnvironment>
  forget(deploymentId: string): void
}

// Set by the platform, so not secret. If they were masked, every line with the site's own URL would be unreadable.
const platformNames = new Set(
  'NODE_ENV PORT HOST CI PATH HOME BERTH_URL BERTH_COMMIT BERTH_REF BERTH_ENV BERTH_REGION'.split(' '),
)
const readMs = 5_000

export function createEnvironments(settingsOf: (deploymentId: string) => Promise<ServerSettings>): Environments {
  const known = new Map<string, ServerSettings>()

  async function fresh(deploymentId: string): Promise<ServerSettings> {
    const late = Promise.withResolvers<never>()
    const timer = setTimeout(() => late.reject(new Error('The variables of the project could not be read.')), readMs)
    try {
      return await Promise.race([settingsOf(deploymentId), late.promise])
    } finally {
      clearTimeout(timer)
    }
  }

  return {
    async read(deploymentId) {
      const settings = await fresh(deploymentId).catch((error) => {
        const old = known.get(deploymentId)
        if (old) return old
        throw error
      })
      known.set(deploymentId, settings)
      const secrets = Object.entries(settings.environment).flatMap(([name, value]) =>
        platformNames.has(name) ? [] : [value],
      )
      return { ...settings, secrets }
    },
    forget(deploymentId) {
      known.delete(deploymentId)
    },
  }
}
