// The public interface of the engine that sends events to webhooks.
export { startDeliveries } from './deliveries.ts'
