// Door of support tickets.
export { changeTicket, replyToTicket, transitionsOf } from './states.ts'
export {
  asCustomer,
  asSupport,
  checkRelated,
  createTicket,
  getTicket,
  listMessages,
  listTickets,
  type TicketView,
  viewTicket,
} from './tickets.ts'
