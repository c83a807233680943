// Errors of tickets, and of state changes in general.

export const ticketErrors = {
  ticket_closed: {
    title: 'The ticket is closed',
    cause: 'A CLOSED ticket accepts no messages or changes.',
    cure: 'Open a new ticket.',
  },
  invalid_transition: {
    title: 'The state cannot change that way',
    cause: 'The resource cannot move from its current state to the requested one.',
    cure: 'Read the resource again.',
  },
} as const
