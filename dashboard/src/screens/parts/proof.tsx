// What changes how one signs in needs a fresh sign-in, or the password of now.
import { Field, me } from '../../kit/index.ts'

/** Asked of those who have a password; the others sign in again when it is long ago. */
export function ProofField() {
  if (!me.value?.user.password) return null
  return (
    <Field
      name="current"
      label="Your password of now"
      type="password"
      autocomplete="current-password"
      hint="Needed when you signed in more than ten minutes ago."
    />
  )
}

export const proofFrom = ({ current }: Record<string, string>) => (current ? { current } : {})
