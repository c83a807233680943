// The account: its limits and what it uses.
import { Top } from '../kit/index.ts'

export default function Account() {
  return <Top title="Account" />
}
