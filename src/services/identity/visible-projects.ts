// Which projects an actor sees, as conditions for queries.
import type { Actor } from './actor.ts'

/** The condition that a project is the actor's. Combine it with other conditions by `AND`: both may name the id. */
export function projectsOf({ accountId, projectIds }: Actor) {
  return projectIds ? { accountId, id: { in: [...projectIds] } } : { accountId }
}

/** The condition that a row belongs to a project of the actor. */
export function inProjectsOf({ accountId, projectIds }: Actor) {
  return projectIds ? { accountId, projectId: { in: [...projectIds] } } : { accountId }
}
