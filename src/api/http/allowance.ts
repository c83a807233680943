// How many waits and streams an account may have open at once.
import type { Config } from '../../config.ts'
import type { Actor } from '../../services/tokens/actor.ts'

export type Allowance = (actor: Actor, name: 'waits' | 'streams') => number | Promise<number>

/** The platform's default for every account. */
export function createAllowance(config: Config): Allowance {
  return (_actor, name) => config.quotas[name]
}
