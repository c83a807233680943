// A webhook and its attempts.
import { Top } from '../kit/index.ts'

export default function Webhook() {
  return <Top title="Webhook" />
}
