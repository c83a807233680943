// For the operator: accounts, nodes, jobs, takedowns.
import { Top } from '../kit/index.ts'

export default function Operator() {
  return <Top title="Operator" />
}
