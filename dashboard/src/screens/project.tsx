// A project: its deployments, branches, traffic, settings, variables and push hook.
import { Top } from '../kit/index.ts'

export default function Project() {
  return <Top title="Project" />
}
