// A ticket and its thread.
import { Top } from '../kit/index.ts'

export default function Ticket() {
  return <Top title="Ticket" />
}
