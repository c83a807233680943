// One ticket and its conversation.
import { may, type Params } from '../kit/index.ts'
import { Thread } from './parts/tickets.tsx'

export default function TicketScreen({ params }: { params: Params }) {
  return <Thread id={params.id!} side="customer" may={may('tickets:write')} />
}
