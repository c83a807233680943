// Checks whether a name can be attached, finds rival claims, and chooses the nameservers.
import type { Db } from '../../platform/database/database.ts'
import { Fault, invalidField } from '../../platform/errors.ts'
import type { Actor } from '../identity/index.ts'
import { hostOf, isWildcard, parentsOf } from '../names/index.ts'
import { formerlyNamed } from '../projects/index.ts'
import { choosePair, defaultPair, nameserversOf } from './nameservers.ts'
import { readAvailability } from './statements.ts'

export type Availability = Awaited<ReturnType<typeof readAvailability>>[number]

/** Finds the project to attach a name to, and rival claims. Throws if the name can't be attached. */
export async function findTarget(db: Db, actor: Actor, projectKey: string, name: string): Promise<Availability> {
  const { accountId, projectIds } = actor
  // An account that has verified a name owns every name below it too.
  const names = [name, ...parentsOf(name)]
  const read = async (projectKey: string) =>
    (await readAvailability(db, { accountId, projectIds, projectKey, name, host: hostOf(name), names }))[0]
  let found = await read(projectKey)
  if (!found) {
    const former = await formerlyNamed(db, accountId, projectKey)
    found = former === null ? undefined : await read(former)
  }
  if (!found) throw new Fault('not_found', `There is no project ${projectKey}.`)
  if (found.exists) throw new Fault('domain_exists', `The account already has the domain ${name}.`)
  if (found.outside) {
    const detail = `A parent of ${name} is attached to a project of this account that the token cannot access.`
    throw new Fault('domain_taken', detail)
  }
  if (found.taken) throw new Fault('domain_taken', `Another account owns ${name} or a parent of it.`)
  if (isWildcard(name) && !found.hostPair) {
    throw invalidField('#/name', 'zone_not_here', `needs ${hostOf(name)} to be attached first`)
  }
  return found
}

/** Chooses the nameservers of a new claim; a wildcard has those of its host. */
export async function pairFor(db: Db, pool: readonly string[], actor: Actor, found: Availability): Promise<string[]> {
  if (found.hostPair) return nameserversOf(pool, found.hostPair)
  const usual = await defaultPair(db, pool, { accountId: actor.accountId, stored: found.usual })
  return choosePair(pool, { usual, own: found.own }, found)
}
