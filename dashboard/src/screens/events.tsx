// Everything that happened in the account.
import { Top } from '../kit/index.ts'

export default function Events() {
  return <Top title="Events" />
}
