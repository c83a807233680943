// The webhooks of the account.
import { Top } from '../kit/index.ts'

export default function Webhooks() {
  return <Top title="Webhooks" />
}
