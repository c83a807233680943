// The ways in: passkey, password with a code, another provider.
import { useState } from 'preact/hooks'
import {
  callAuth,
  Field,
  Form,
  hasPasskeys,
  ProblemView,
  passkeyProblem,
  rememberPlace,
  State,
  Top,
  useParam,
  usePasskey,
  useQuery,
  wantedPlace,
} from '../kit/index.ts'
import type { RequestOptions } from '../kit/passkeys.ts'

type Options = { password: boolean; passkey: boolean; oidc: { name: string } | null; mail: boolean }
type Answer = { next?: 'totp' }

/** Loaded anew, so that nothing of another person's session is left in the page. */
function enter(): void {
  location.assign(wantedPlace())
}

export default function SignIn() {
  const options = useQuery(callAuth<Options>('GET', '/options'))
  const [step, go] = useState<'first' | 'totp'>('first')
  // Without an answer, the ways that every installation has.
  const ways = options.data ?? { password: true, passkey: true, oidc: null, mail: false }
  return (
    <>
      <Top title={step === 'totp' ? 'One more step' : 'Sign in to Berth'} />
      {step === 'totp' ? (
        <Code back={() => go('first')} />
      ) : (
        <div class="stack">
          <Refusal />
          {ways.passkey && hasPasskeys() && <Passkey />}
          {ways.oidc && (
            <a class="button block" href="/auth/oidc" onClick={rememberPlace}>
              Sign in with {ways.oidc.name}
            </a>
          )}
          {ways.password && (
            <Password
              second={ways.passkey && hasPasskeys()}
              done={(answer) => (answer.next === 'totp' ? go('totp') : enter())}
            />
          )}
          <p class="soft">
            No way in yet? Open the link that you were sent, or ask whoever runs this server for one:{' '}
            <code>berth users link you@example.com</code>
          </p>
        </div>
      )}
    </>
  )
}

// Why a provider sent the person back; anybody can write something else into the address.
const refusals: Record<string, string> = {
  sign_in_failed: 'The provider did not sign you in.',
  sign_in_step_over: 'It took too long, or began in another browser.',
  not_invited: 'Nobody has invited the address that the provider told.',
  identity_provider_unavailable: 'The provider does not answer.',
  rate_limited: 'There were too many tries. Wait a little.',
}

function Refusal() {
  const [code] = useParam('error')
  const says = Object.hasOwn(refusals, code) && refusals[code]
  if (!says) return null
  return (
    <p role="alert">
      <State is="bad">{says}</State> Try again, or use another way.
    </p>
  )
}

function Passkey() {
  const [error, fail] = useState<unknown>(null)
  const [busy, wait] = useState(false)
  async function use(): Promise<void> {
    wait(true)
    fail(null)
    try {
      const options = await callAuth<RequestOptions>('POST', '/passkeys/options').send()
      const response = await usePasskey(options).catch((problem) => {
        throw passkeyProblem(problem)
      })
      await callAuth('POST', '/passkeys/sign-in', { response }).send()
      enter()
    } catch (problem) {
      fail(problem)
      wait(false)
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
        submit="Go on"
        cancel={back}
        done={enter}
      >
        <Field
          name="code"
          label="Code"
          autocomplete="one-time-code"
          hint="Six digits of your authenticator, or one of your recovery codes."
          mono
          required
          autoFocus
        />
      </Form>
    </section>
  )
}
