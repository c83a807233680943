// The domains of the account, and the way in for a new one.
import { Top } from '../kit/index.ts'

export default function Domains() {
  return <Top title="Domains" />
}
