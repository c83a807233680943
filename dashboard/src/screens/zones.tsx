// The zones of the account.
import { Top } from '../kit/index.ts'

export default function Zones() {
  return <Top title="DNS" />
}
