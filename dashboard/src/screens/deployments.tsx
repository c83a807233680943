// The deployments of the account.
import { Top } from '../kit/index.ts'

export default function Deployments() {
  return <Top title="Deployments" />
}
