// A deployment: its steps, its log, and what can be done with it.
import { Top } from '../kit/index.ts'

export default function Deployment() {
  return <Top title="Deployment" />
}
