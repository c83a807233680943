// The ways in: passkey, password, another provider.
import { Top } from '../kit/index.ts'

export default function SignIn() {
  return <Top title="Sign in" />
}
