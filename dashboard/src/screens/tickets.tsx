// The tickets of the account; the operator sees all.
import { Top } from '../kit/index.ts'

export default function Tickets() {
  return <Top title="Tickets" />
}
