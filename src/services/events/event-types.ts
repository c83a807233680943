// What an event holds before it is written.
import type { eventTypes } from '../../schemas/events.ts'

export type EventType = (typeof eventTypes)[number]

export type NewEvent = {
  accountId: string
  projectId: string | null
  type: EventType
  /** A token's id, or `system`. */
  actor: string
  /** Key of the resource: its id, or the name of a domain. */
  subject: string
  /** The resource as the API shows it, after the change. */
  data: object
}
