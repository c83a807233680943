// Public entry point of identity: actors and their rights.
export { type Actor, actorName, allows, changesTokens, rightsOf, type Scope } from './actor.ts'
export { lockAccount } from './statements.ts'
export { inProjectsOf, projectsOf } from './visible-projects.ts'
export { hasRecord, isCovered, isWhole, partsIn, withinParts, type ZonePart, type ZoneParts } from './zone-parts.ts'
