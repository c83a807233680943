// The person's own page: profile, ways to sign in, sessions, mails.
import { Top } from '../kit/index.ts'

export default function Me() {
  return <Top title="You" />
}
