// Accepts a set-up link or an invitation, and offers to create a passkey.
import { useState } from 'preact/hooks'
import {
  BerthError,
  callAuth,
  createPasskey,
  currentUrl,
  Empty,
  Field,
  Form,
  hasPasskeys,
  Loaded,
  Panel,
  ProblemView,
  passkeyProblem,
  Top,
  useQuery,
} from '../kit/index.ts'
import type { CreationOptions } from '../kit/passkeys.ts'

type Lookup = {
  kind: 'first-owner' | 'link' | 'invitation'
  email: string | null
  account: string | null
  role: string | null
}

export default function Setup() {
  const code = currentUrl.value.hash.slice(1)
  const lookup = useQuery(code ? callAuth<Lookup>('POST', '/setup/look', { code }) : null)
  const [signedIn, setSignedIn] = useState(false)
  if (signedIn) return <OfferPasskey />
  if (!code) {
    return (
      <>
        <Top title="Set up" />
        <Panel>
          <Empty title="This link is incomplete">
            <p>
              Open the whole link, including the code after <code>#</code>. Or <a href="/sign-in">sign in</a>.
            </p>
          </Empty>
        </Panel>
      </>
    )
  }
  if (lookup.error instanceof BerthError && lookup.error.code === 'link_not_valid') return <Invalid />
  return (
    <Loaded of={lookup}>
      {(found) => (
        <SetupForm
          code={code}
          found={found}
          done={() => {
            // The code is used up; remove it from the URL.
            history.replaceState(null, '', '/setup')
            setSignedIn(true)
          }}
        />
      )}
    </Loaded>
  )
}

function Invalid() {
  return (
    <>
      <Top title="This link is no longer valid" />
      <Panel>
        <Empty title="It was used or has expired">
          <p>
            A link works once. Ask the operator for a new one: <code>berth users link you@example.com</code>. For an
            invitation, ask the person who invited you.
          </p>
          <a class="button" href="/sign-in">
            Sign in
          </a>
        </Empty>
      </Panel>
    </>
  )
}

const titles = {
  'first-owner': 'Welcome to Berth',
  link: 'Sign in with your link',
  invitation: "You're invited",
}

function SetupForm({ code, found, done }: { code: string; found: Lookup; done: () => void }) {
  const { kind, email, account, role } = found
  const isNew = kind !== 'link'
  return (
    <>
      <Top title={titles[kind]} />
      <p class="lead">
        {kind === 'first-owner' && (
          <>
            You become the first owner of the account <b>{account}</b>, and the operator of this server.
          </>
        )}
        {kind === 'invitation' && (
          <>
            To the account <b>{account}</b> as <b>{role}</b>, with the email address <b>{email}</b>.
          </>
        )}
        {kind === 'link' && (
          <>
            As <b>{email}</b>. The link works once.
          </>
        )}
      </p>
      <section class="panel" aria-label={titles[kind]}>
        <Form
          call={({ email: own, name }) => {
            const given = { ...(own !== undefined && { email: own }), ...(name && { name }) }
            return callAuth('POST', '/setup', { code, ...given })
          }}
          submit={kind === 'invitation' ? 'Accept the invitation' : isNew ? 'Set up' : 'Sign in'}
          done={done}
        >
          {isNew && <Field name="name" label="Your name" autocomplete="name" autoFocus />}
          {kind === 'first-owner' && (
            <Field
              name="email"
              label="Your email"
              type="email"
              autocomplete="email"
              hint="For signing in and for emails."
              required
            />
          )}
        </Form>
      </section>
      {kind === 'invitation' && (
        <p class="soft">
          Already have an account here? <a href={`/sign-in?next=${encodeURIComponent('/me')}`}>Sign in first</a>, then
          open the invitation again.
        </p>
      )}
    </>
  )
}

function OfferPasskey() {
  const [error, setError] = useState<unknown>(null)
  const [busy, setBusy] = useState(false)
  const go = () => location.assign('/')
  async function make(): Promise<void> {
    setBusy(true)
    setError(null)
    try {
      const options = await callAuth<CreationOptions>('POST', '/passkeys/register/options').send()
      const response = await createPasskey(options).catch((problem) => {
        throw passkeyProblem(problem)
      })
      await callAuth('POST', '/passkeys', { name: deviceName(), response }).send()
      go()
    } catch (problem) {
      setError(problem)
      setBusy(false)
    }
  }
  return (
    <>
      <Top title="You're signed in" />
      <div class="stack">
        <p>The link worked only once. Create a passkey for next time.</p>
        {error !== null && <ProblemView error={error} />}
        <div class="row wrap">
          {hasPasskeys() && (
            <button type="button" class="primary" disabled={busy} onClick={() => void make()}>
              Create a passkey
            </button>
          )}
          <button type="button" onClick={go}>
            Later
          </button>
        </div>
        <p class="soft">
          To manage passkeys, password and sessions, open your email address at the bottom of the page.
        </p>
      </div>
    </>
  )
}

/** Tells passkeys apart. */
function deviceName(): string {
  const agent = navigator.userAgent
  const system = /iPhone|iPad|Android|Mac|Windows|Linux/.exec(agent)?.[0] ?? 'Device'
  const browser = /Firefox|Edg|Chrome|Safari/.exec(agent)?.[0]?.replace('Edg', 'Edge') ?? 'browser'
  return `${system}, ${browser}`
}
