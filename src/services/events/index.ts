// Public entry point of the event log.
export { type EventType, matchesType, type NewEvent } from './event-types.ts'
export {
  append,
  continueLog,
  type EventFilter,
  eventOf,
  eventsAfter,
  eventsBetween,
  isAfter,
  type LoggedEvent,
  numbered,
  type Position,
  positionOf,
  reads,
} from './events.ts'
export { cursorKeys, filterOf, listEvents } from './list.ts'
export { maintainEventMonths } from './months.ts'
export { eventIn, eventsIn, eventValues, horizon, insertEvent, insertEventsOf } from './statements.ts'
