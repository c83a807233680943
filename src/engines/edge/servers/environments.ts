// The environment of each deployment's server, remembered so that a server comes back while the database is away.

export type ServerEnvironment = { environment: Record<string, string>; secrets: string[] }

export type Environments = {
  read(deploymentId: string): Promise<ServerEnvironment>
  forget(deploymentId: string): void
}

// Set by the platform, so no secrets: masked, every line with the site's own address would be unreadable.
const platformNames = new Set(
  'NODE_ENV PORT HOST CI PATH HOME BERTH_URL BERTH_COMMIT BERTH_REF BERTH_ENV BERTH_REGION'.split(' '),
)
const readMs = 5_000

export function createEnvironments(
  environmentOf: (deploymentId: string) => Promise<Record<string, string>>,
): Environments {
  const known = new Map<string, Record<string, string>>()

  async function fresh(deploymentId: string): Promise<Record<string, string>> {
    const late = Promise.withResolvers<never>()
    const timer = setTimeout(() => late.reject(new Error('The variables of the project could not be read.')), readMs)
    try {
      return await Promise.race([environmentOf(deploymentId), late.promise])
    } finally {
      clearTimeout(timer)
    }
  }

  return {
    async read(deploymentId) {
      const environment = await fresh(deploymentId).catch((error) => {
        const old = known.get(deploymentId)
        if (old) return old
        throw error
      })
      known.set(deploymentId, environment)
      const secrets = Object.entries(environment).flatMap(([name, value]) => (platformNames.has(name) ? [] : [value]))
      return { environment, secrets }
    },
    forget(deploymentId) {
      known.delete(deploymentId)
    },
  }
}
