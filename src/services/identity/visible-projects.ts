// Query conditions for the projects that an actor can see.
import type { Actor } from './actor.ts'

/** Matches the actor's projects. Combine it with other conditions through `AND`, because both may use the id. */
export function projectsOf({ accountId, projectIds }: Actor) {
  return projectIds ? { accountId, id: { in: [...projectIds] } } : { accountId }
}

/** Matches rows that belong to a project of the actor. */
export function inProjectsOf({ accountId, projectIds }: Actor) {
  return projectIds ? { accountId, projectId: { in: [...projectIds] } } : { accountId }
}
