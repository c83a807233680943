// A domain: what to set, what is seen now, and its certificate.
import { Top } from '../kit/index.ts'

export default function Domain() {
  return <Top title="Domain" />
}
