// Events before they are written, and patterns of event types.
import { eventTypes } from '../../schemas/events.ts'

export type EventType = (typeof eventTypes)[number]

export type NewEvent = {
  accountId: string
  projectId: string | null
  type: EventType
  /** A token's id, or `system`. */
  actor: string
  /** The id of the resource, or the name of a domain. */
  subject: string
  /** The resource as the API shows it, after the change. */
  data: object
}

/** Whether the pattern is the type, a prefix of it such as `deployment.*`, or `*`. */
export function matchesType(pattern: string, type: EventType): boolean {
  return pattern === '*' || pattern === type || (pattern.endsWith('.*') && type.startsWith(pattern.slice(0, -1)))
}

export function typesOf(patterns: readonly string[]): EventType[] {
  return eventTypes.filter((type) => patterns.some((pattern) => matchesType(pattern, type)))
}
