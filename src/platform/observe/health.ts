// What keeps this process from working: each part adds a check of its own, and /readyz asks them all.

/** Null while all is well, else one sentence for the operator. */
export type Check = () => string | null | Promise<string | null>

export type HealthReport = {
  /** `degraded`: something is wrong, but the roles asked about work without it. */
  status: 'ok' | 'degraded' | 'unavailable'
  /** By the name of the check: `ok`, or its sentence. */
  checks: Record<string, string>
}

export type Health = {
  /** `roles`: those that cannot work while the check fails, default all. Returns what removes the check. */
  add(name: string, check: Check, roles?: readonly string[]): () => void
  /** Asks about one role, or about all that run in this process. */
  look(role?: string): Promise<HealthReport>
}

type Entry = { name: string; check: Check; roles: readonly string[] | undefined }
type Finding = Entry & { reason: string | null }

// Less than the three seconds that balancers and container engines usually wait.
const checkTimeoutMs = 2_500

/** `running`: the roles of this process. */
export function createHealth(running: readonly string[]): Health {
  const entries = new Set<Entry>()
  let looking: Promise<Finding[]> | null = null

  function findings(): Promise<Finding[]> {
    const asked = Array.from(entries, async (entry) => ({ ...entry, reason: await inTime(entry.check) }))
    return Promise.all(asked)
  }

  return {
    add(name, check, roles) {
      const entry = { name, check, roles }
      entries.add(entry)
      return () => void entries.delete(entry)
    },
    async look(role) {
      if (role !== undefined && !running.includes(role)) {
        return { status: 'unavailable', checks: { role: 'This process does not run the role.' } }
      }
      // Once for all who ask meanwhile: nobody needs a token for it.
      looking ??= findings().finally(() => {
        looking = null
      })
      const found = await looking
      const asked = role === undefined ? running : [role]
      const failed = found.filter(({ reason }) => reason !== null)
      const ends = failed.some(({ roles }) => !roles || roles.some((one) => asked.includes(one)))
      return {
        status: ends ? 'unavailable' : failed.length > 0 ? 'degraded' : 'ok',
        checks: Object.fromEntries(found.map(({ name, reason }) => [name, reason ?? 'ok'])),
      }
    },
  }
}

/** A check that hangs or throws has failed. */
async function inTime(check: Check): Promise<string | null> {
  const late = Promise.withResolvers<string>()
  const timer = setTimeout(() => late.resolve('The check got no answer in time.'), checkTimeoutMs)
  try {
    return await Promise.race([check(), late.promise])
  } catch {
    return 'The check failed.'
  } finally {
    clearTimeout(timer)
  }
}
