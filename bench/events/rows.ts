// The measurements of the group events.
import type { Bench, Figure } from '../group.ts'

export const figures = {
  writes: { what: 'API writes per second with every event sent to a webhook', against: 'the same without webhooks' },
  delay: { what: 'p99 from a change to the first attempt to deliver it', against: '–' },
  single: { what: 'Deliveries per second to one receiver', against: '–' },
  takeover: { what: 'Pause in deliveries after their worker is killed', against: '–' },
  streams: { what: 'Memory of 1,000 open event streams', against: '–' },
} satisfies Record<string, Figure>

export type EventsBench = Bench<keyof typeof figures>
