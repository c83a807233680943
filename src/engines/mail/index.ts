// The entry of the engine that sends mails.
export { createMailHandlers } from './handlers.ts'
