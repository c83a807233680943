// Errors of signing in, in the console and with a device code.

export const sessionErrors = {
  cross_origin: {
    title: 'The request comes from another site',
    cause:
      'Sign-in requests must come from the console’s own pages, with `Sec-Fetch-Site: same-origin` or an `Origin` that ' +
      'matches `BASE_URL`.',
    cure: 'Open the console at its own URL.',
  },
  insecure_origin: {
    title: 'Sign-in needs HTTPS',
    cause: '`BASE_URL` is an `http://` URL other than localhost, where browsers do not store secure cookies.',
    cure: 'Set `BASE_URL` to an https:// URL, or use http://localhost.',
  },
  not_signed_in: {
    title: 'You are not signed in',
    cause: 'The request has no session, or the session has ended.',
    cure: 'Sign in.',
  },
  link_not_valid: {
    title: 'The link is not valid',
    cause: 'The link does not exist, has expired, or was already used or revoked.',
    cure: 'Ask for a new link. On the server, `berth users link <email>` creates one.',
  },
  authorization_pending: {
    title: 'The sign-in is not approved yet',
    cause: 'The user has not approved or denied the sign-in in the console yet.',
    cure: 'Poll again after `interval` seconds.',
  },
  slow_down: {
    title: 'The client polls too often',
    cause: 'The client polled again before `interval` seconds had passed.',
    cure: 'Add five seconds to the interval.',
  },
  expired_token: {
    title: 'The device code is no longer valid',
    cause: 'The device code was used, has expired, or never existed.',
    cure: 'Run `berth login` again.',
  },
  access_denied: {
    title: 'The sign-in was denied',
    cause: 'The user denied the sign-in in the console, or no longer has the permissions they approved.',
    cure: 'Start again and approve the sign-in.',
  },
  sign_in_first: {
    title: 'Sign in to accept this invitation',
    cause: 'The invited person already has a user here, and the link may have been seen by others.',
    cure: 'Sign in as that person, then open the link again.',
  },
  https_required: {
    title: 'HTTPS is required',
    cause: 'The request came over plain HTTP from another machine, so its token may have been intercepted.',
    cure: 'Use the https:// URL, and revoke the token you sent in the clear.',
  },
} as const

export const credentialErrors = {
  sign_in_failed: {
    title: 'Sign-in failed',
    cause: 'The email, password, code or passkey is wrong.',
    cure: 'Try again. On the server, `berth users link <email>` creates a sign-in link.',
  },
  sign_in_step_over: {
    title: 'The sign-in has to start again',
    cause: 'The previous step was already used, was more than five minutes ago, or happened in another browser.',
    cure: 'Start again in this browser, within five minutes.',
  },
  not_invited: {
    title: 'You have not been invited',
    cause:
      'The identity provider confirmed who you are, but no user here has that identity, and no invitation was sent to an ' +
      'email that the provider has verified.',
    cure: 'Ask a member to invite the email you use at the provider.',
  },
  proof_required: {
    title: 'Confirm your identity',
    cause: 'Changing how you sign in requires your password, or a sign-in less than ten minutes ago.',
    cure: 'Send your password as `current`, or sign in again and retry.',
  },
  last_sign_in_method: {
    title: 'This is your only way to sign in',
    cause: 'Without this passkey, the user could no longer sign in.',
    cure: 'Add another passkey or a password first.',
  },
  passkey_exists: {
    title: 'The passkey already exists',
    cause: 'This passkey was already added.',
    cure: 'Sign in with this passkey, or add another one.',
  },
  totp_exists: {
    title: 'One-time passwords are already set up',
    cause: 'The user already has an authenticator app.',
    cure: 'Remove the authenticator app first.',
  },
  identity_provider_unavailable: {
    title: 'The identity provider is unavailable',
    cause: 'The identity provider did not respond, or its response was invalid.',
    cure: 'Retry later, or sign in another way.',
  },
} as const
