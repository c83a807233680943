// Uses a set-up link or an invitation.
import { Top } from '../kit/index.ts'

export default function Setup() {
  return <Top title="Set up" />
}
