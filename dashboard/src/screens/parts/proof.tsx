// Changing how you sign in requires a recent sign-in or the current password.
import { Field, me } from '../../kit/index.ts'

/** Only for people with a password; others must have signed in recently. */
export function ProofField() {
  if (!me.value?.user.password) return null
  return (
    <Field
      name="current"
      label="Current password"
      type="password"
      autocomplete="current-password"
      hint="Required if you signed in more than ten minutes ago."
    />
  )
}

export const proofFrom = ({ current }: Record<string, string>) => (current ? { current } : {})
