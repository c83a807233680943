// The sign-in page: passkey, password with a one-time code, or an identity provider.
import { useState } from 'preact/hooks'
import {
  callAuth,
  Field,
  Form,
  hasPasskeys,
  ProblemView,
  passkeyProblem,
  returnUrl,
  State,
  saveReturnUrl,
  Top,
  useParam,
  usePasskey,
  useQuery,
} from '../kit/index.ts'
import type { RequestOptions } from '../kit/passkeys.ts'

type Options = { password: boolean; passkey: boolean; oidc: { name: string } | null; mail: boolean }
type Answer = { next?: 'totp' }

/** Reloads the page, so that nothing of another person's session stays. */
function enter(): void {
  location.assign(returnUrl())
}

export default function SignIn() {
  const options = useQuery(callAuth<Options>('GET', '/options'))
  const [step, setStep] = useState<'first' | 'totp'>('first')
  // Until they load, the methods that every installation has.
  const methods = options.data ?? { password: true, passkey: true, oidc: null, mail: false }
  return (
    <>
      <Top title={step === 'totp' ? 'One more step' : 'Sign in to Berth'} />
      {step === 'totp' ? (
        <Code back={() => setStep('first')} />
      ) : (
        <div class="stack">
          <Refusal />
          {methods.passkey && hasPasskeys() && <Passkey />}
          {methods.oidc && (
            <a class="button block" href="/auth/oidc" onClick={saveReturnUrl}>
              Sign in with {methods.oidc.name}
            </a>
          )}
          {methods.password && (
            <Password
              second={methods.passkey && hasPasskeys()}
              done={(answer) => (answer.next === 'totp' ? setStep('totp') : enter())}
            />
          )}
          <p class="soft">
            Can't sign in yet? Open the link you were sent, or ask the operator for one:{' '}
            <code>berth users link you@example.com</code>
          </p>
        </div>
      )}
    </>
  )
}

// Why a provider sent the person back. Anyone can put another code in the URL.
const refusals: Record<string, string> = {
  sign_in_failed: "The provider didn't sign you in.",
  sign_in_step_over: 'It took too long, or started in another browser.',
  not_invited: 'The email address from the provider has no invitation.',
  identity_provider_unavailable: "The provider isn't responding.",
  rate_limited: 'Too many attempts. Wait a minute.',
}

function Refusal() {
  const [code] = useParam('error')
  const says = Object.hasOwn(refusals, code) && refusals[code]
  if (!says) return null
  return (
    <p role="alert">
      <State is="bad">{says}</State> Try again, or sign in another way.
    </p>
  )
}

function Passkey() {
  const [error, setError] = useState<unknown>(null)
  const [busy, setBusy] = useState(false)
  async function use(): Promise<void> {
    setBusy(true)
    setError(null)
    try {
      const options = await callAuth<RequestOptions>('POST', '/passkeys/options').send()
      const response = await usePasskey(options).catch((problem) => {
        throw passkeyProblem(problem)
      })
      await callAuth('POST', '/passkeys/sign-in', { response }).send()
      enter()
    } catch (problem) {
      setError(problem)
      setBusy(false)
    }
  }
  return (
    <>
      <button type="button" class="primary block" disabled={busy} onClick={() => void use()}>
        Sign in with a passkey
      </button>
      {error !== null && <ProblemView error={error} />}
    </>
  )
}

function Password({ second, done }: { second: boolean; done: (answer: Answer) => void }) {
  return (
    <section class="panel" aria-label="With a password">
      <Form
        call={({ email = '', password = '' }) => callAuth<Answer>('POST', '/password', { email, password })}
        submit="Sign in with a password"
        second={second}
        done={done}
      >
        <Field name="email" label="Email" type="email" autocomplete="username" required />
        <Field name="password" label="Password" type="password" autocomplete="current-password" required />
      </Form>
    </section>
  )
}

function Code({ back }: { back: () => void }) {
  return (
    <section class="panel" aria-label="Code">
      <Form
        call={({ code = '' }) => callAuth('POST', '/totp', { code: code.replaceAll(' ', '') })}
        submit="Continue"
        cancel={back}
        done={enter}
      >
        <Field
          name="code"
          label="Code"
          autocomplete="one-time-code"
          hint="Six digits from your app, or a recovery code."
          mono
          required
          autoFocus
        />
      </Form>
    </section>
  )
}
