// The people of the account, their roles and invitations.
import { Top } from '../kit/index.ts'

export default function Members() {
  return <Top title="Members" />
}
