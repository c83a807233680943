// The projects, what they do in production, and what needs somebody.
import { Top } from '../kit/index.ts'

export default function Overview() {
  return <Top title="Projects" />
}
