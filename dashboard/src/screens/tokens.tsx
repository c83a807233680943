// The tokens of the account.
import { Top } from '../kit/index.ts'

export default function Tokens() {
  return <Top title="Tokens" />
}
