// Health of this process: each part adds a check, and /readyz runs them all.

/** Null if all is well, otherwise a sentence for the operator. */
export type Check = () => string | null | Promise<string | null>

export type HealthReport = {
  /** `degraded`: something is wrong, but the requested roles work without it. */
  status: 'ok' | 'degraded' | 'unavailable'
  /** By name: `ok`, or the sentence of a failed check. */
  checks: Record<string, string>
}

export type Health = {
  /** `roles` are those that can't work while the check fails; all by default. Returns a function that removes the check. */
  add(name: string, check: Check, roles?: readonly string[]): () => void
  /** Checks one role, or all roles of this process. */
  check(role?: string): Promise<HealthReport>
}

type Entry = { name: string; check: Check; roles: readonly string[] | undefined }
type CheckResult = Entry & { reason: string | null }

// Less than the three seconds that load balancers and container engines usually wait.
const checkTimeoutMs = 2_500

/** `running` are the roles of this process. */
export function createHealth(running: readonly string[]): Health {
  const entries = new Set<Entry>()
  let checking: Promise<CheckResult[]> | null = null

  function runChecks(): Promise<CheckResult[]> {
    const results = Array.from(entries, async (entry) => ({ ...entry, reason: await inTime(entry.check) }))
    return Promise.all(results)
  }

  return {
    add(name, check, roles) {
      const entry = { name, check, roles }
      entries.add(entry)
      return () => void entries.delete(entry)
    },
    async check(role) {
      if (role !== undefined && !running.includes(role)) {
        return { status: 'unavailable', checks: { role: 'This process does not run the role.' } }
      }
      // Concurrent callers share one run, because anybody may call this without a token.
      checking ??= runChecks().finally(() => {
        checking = null
      })
      const found = await checking
      const affected = role === undefined ? running : [role]
      const failed = found.filter(({ reason }) => reason !== null)
      const isUnavailable = failed.some(({ roles }) => !roles || roles.some((one) => affected.includes(one)))
      return {
        status: isUnavailable ? 'unavailable' : failed.length > 0 ? 'degraded' : 'ok',
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
