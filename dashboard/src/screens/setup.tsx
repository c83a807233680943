// Uses a set-up link or an invitation, and offers to make a passkey for the next time.
import { useState } from 'preact/hooks'
import {
  BerthError,
  callAuth,
  Empty,
  Field,
  Form,
  hasPasskeys,
  Loaded,
  makePasskey,
  Panel,
  ProblemView,
  passkeyProblem,
  place,
  Top,
  useQuery,
} from '../kit/index.ts'
import type { CreationOptions } from '../kit/passkeys.ts'

type Look = {
  kind: 'first-owner' | 'link' | 'invitation'
  email: string | null
  account: string | null
  role: string | null
}

export default function Setup() {
  const code = place.value.hash.slice(1)
  const look = useQuery(code ? callAuth<Look>('POST', '/setup/look', { code }) : null)
  const [isIn, enter] = useState(false)
  if (isIn) return <OfferPasskey />
  if (!code) {
    return (
      <>
        <Top title="Set up" />
        <Panel>
          <Empty title="The link is not whole">
            <p>
              Open it again as it was printed or sent: its code stands behind <code>#</code>. Or{' '}
              <a href="/sign-in">sign in</a>.
            </p>
          </Empty>
        </Panel>
      </>
    )
  }
  if (look.error instanceof BerthError && look.error.code === 'link_not_valid') return <NotValid />
  return (
    <Loaded of={look}>
      {(found) => (
        <Use
          code={code}
          found={found}
          done={() => {
            // It is used up: nobody needs to see it in the address any more.
            history.replaceState(null, '', '/setup')
            enter(true)
          }}
        />
      )}
    </Loaded>
  )
}

function NotValid() {
  return (
    <>
      <Top title="This link is not valid any more" />
      <Panel>
        <Empty title="It was used, or it is too old">
          <p>
            A link signs in once. Ask whoever runs this server for a new one:{' '}
            <code>berth users link you@example.com</code>. For an invitation, ask the person who invited you.
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
  link: 'Sign in by your link',
  invitation: 'You are invited',
}

function Use({ code, found, done }: { code: string; found: Look; done: () => void }) {
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
            To the account <b>{account}</b> as <b>{role}</b>, with the address <b>{email}</b>.
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
              hint="You sign in with it, and mails go there."
              required
            />
          )}
          {!isNew && <p class="soft">Nothing else is needed.</p>}
        </Form>
      </section>
      {kind === 'invitation' && (
        <p class="soft">
          Do you have an account here already? <a href={`/sign-in?next=${encodeURIComponent('/me')}`}>Sign in first</a>,
          then open the invitation again.
        </p>
      )}
    </>
  )
}

function OfferPasskey() {
  const [error, fail] = useState<unknown>(null)
  const [busy, wait] = useState(false)
  const go = () => location.assign('/')
  async function make(): Promise<void> {
    wait(true)
    fail(null)
    try {
      const options = await callAuth<CreationOptions>('POST', '/passkeys/register/options').send()
      const response = await makePasskey(options).catch((problem) => {
        throw passkeyProblem(problem)
      })
      await callAuth('POST', '/passkeys', { name: deviceName(), response }).send()
      go()
    } catch (problem) {
      fail(problem)
      wait(false)
    }
  }
  return (
    <>
      <Top title="You are in" />
      <div class="stack">
        <p>The link works only once. Make a passkey to sign in without one next time.</p>
        {error !== null && <ProblemView error={error} />}
        <div class="row wrap">
          {hasPasskeys() && (
            <button type="button" class="primary" disabled={busy} onClick={() => void make()}>
              Make a passkey
            </button>
          )}
          <button type="button" onClick={go}>
            Later
          </button>
        </div>
        <p class="soft">Passkeys, your password and sessions are under your address at the foot of the page.</p>
      </div>
    </>
  )
}

/** So that people know their passkeys apart. */
function deviceName(): string {
  const agent = navigator.userAgent
  const system = /iPhone|iPad|Android|Mac|Windows|Linux/.exec(agent)?.[0] ?? 'Device'
  const browser = /Firefox|Edg|Chrome|Safari/.exec(agent)?.[0]?.replace('Edg', 'Edge') ?? 'browser'
  return `${system}, ${browser}`
}
