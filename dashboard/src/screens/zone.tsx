// A zone: its records, a paste with its difference, and who serves it.
import { Top } from '../kit/index.ts'

export default function Zone() {
  return <Top title="Zone" />
}
