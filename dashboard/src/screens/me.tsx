// Your profile: name and email, ways to sign in, sessions, and which emails you get.
import { useEffect } from 'preact/hooks'
import {
  Act,
  ConfirmButton,
  callAuth,
  Empty,
  Field,
  Form,
  Loaded,
  me,
  Panel,
  readMe,
  State,
  signOut,
  Table,
  Time,
  Top,
  toast,
  toastError,
  useParam,
  useQuery,
} from '../kit/index.ts'
import { Passkeys } from './parts/passkeys.tsx'
import { OneTimePasswords, Password } from './parts/password.tsx'
import { ProofField, proofFrom } from './parts/proof.tsx'

export default function Me() {
  const user = me.value?.user
  if (!user) return <Top title="You" />
  return (
    <>
      <Top title={user.name} trail="You">
        <button type="button" onClick={() => void signOut().catch(toastError)}>
          Sign out
        </button>
      </Top>
      <Panel title="Profile" note={user.operator ? 'operator of this installation' : undefined}>
        <Form
          call={({ name, email, ...rest }) =>
            // Sending an unverified address triggers another email.
            callAuth('PATCH', '/me', { name, ...(email !== user.email && { email, ...proofFrom(rest) }) })
          }
          submit="Save"
          done={() => {
            toast('Saved.')
            void readMe()
          }}
        >
          <div class="two">
            <Field name="name" label="Name" value={user.name} autocomplete="name" hint="Shown in events and tokens." />
            <Field name="email" label="Email" type="email" value={user.email} autocomplete="email" />
          </div>
          <ProofField />
        </Form>
        <EmailVerification of={user} />
      </Panel>
      <Passkeys />
      <Password />
      <OneTimePasswords />
      <Sessions />
      <Emails />
    </>
  )
}

/** An unverified address gets no email but the one that verifies it, whose link leads here. */
function EmailVerification({ of: { email, emailProved } }: { of: { email: string; emailProved: boolean } }) {
  const options = useQuery(callAuth<{ mail: boolean }>('GET', '/options'))
  const [code, setCode] = useParam('proof')
  useEffect(() => {
    if (!code) return
    setCode('')
    callAuth('POST', '/me/proof', { code })
      .send()
      .then(() => toast('Your email address is verified.'), toastError)
      .finally(() => void readMe())
  }, [code])
  if (emailProved || !options.data?.mail) return null
  return (
    <p class="note row wrap">
      <State is="busy">Not verified</State>
      <span>Open the link that we sent to {email}. Until then, it gets no other emails.</span>
      <Act
        call={callAuth('PATCH', '/me', { email })}
        text="Send again"
        kind="quiet"
        done={() => toast('Sent, unless the address already got three today.')}
      />
    </p>
  )
}

type Session = {
  id: string
  method: string
  userAgent: string
  address: string
  createdAt: string
  lastSeenAt: string
  expiresAt: string
  current: boolean
}

function Sessions() {
  const sessions = useQuery(callAuth<{ sessions: Session[] }>('GET', '/sessions'), { on: ['session.*'] })
  return (
    <Panel title="Sessions" note="expire after 7 days without use, and after 30 days">
      <Loaded of={sessions}>
        {(data) => (
          <Table
            label="Sessions"
            rows={data.sessions}
            keyOf={({ id }) => id}
            columns={[
              {
                name: 'Browser',
                cell: (it) => (
                  <>
                    <span title={it.userAgent}>{browserOf(it.userAgent)}</span>
                    <div class="soft">{it.address}</div>
                  </>
                ),
              },
              { name: 'Method', wide: true, cell: ({ method }) => method },
              { name: 'Since', wide: true, cell: ({ createdAt }) => <Time at={createdAt} /> },
              {
                name: 'Last used',
                cell: (it) => (it.current ? <State is="ready">This browser</State> : <Time at={it.lastSeenAt} />),
              },
              { name: 'Actions', actions: true, cell: (it) => !it.current && <End of={it} done={sessions.refetch} /> },
            ]}
          />
        )}
      </Loaded>
    </Panel>
  )
}

function End({ of, done }: { of: Session; done(): void }) {
  const what = `${browserOf(of.userAgent)} at ${of.address}`
  return (
    <ConfirmButton
      text="End"
      label={`End the session of ${what}`}
      title="End this session?"
      action="End the session"
      call={callAuth('DELETE', `/sessions/${of.id}`)}
      done={done}
    >
      <p>{what} is signed out at once. Tokens created there keep working.</p>
      <p class="soft">Not you? Then change your password and check your passkeys too.</p>
    </ConfirmButton>
  )
}

/** `Firefox on Linux`, from the user agent. */
function browserOf(agent: string): string {
  const find = (names: string[]) => names.find((name) => agent.includes(name))
  const name = find(['Firefox', 'Edg', 'Chrome', 'Safari'])
  const system = find(['Android', 'iPhone', 'iPad', 'Windows', 'Mac OS', 'Linux'])
  if (!name) return agent.slice(0, 60) || 'Unknown'
  return `${name === 'Edg' ? 'Edge' : name}${system ? ` on ${system}` : ''}`
}

type Kind = { name: string; title: string; security: boolean }

function Emails() {
  const options = useQuery(callAuth<{ mail: boolean }>('GET', '/options'))
  const kinds = useQuery(options.data?.mail ? callAuth<{ mails: Kind[] }>('GET', '/mails') : null)
  const muted = me.value?.user.mutedMails ?? []
  const toggle = (name: string, on: boolean) => {
    const mutedMails = on ? muted.filter((it) => it !== name) : [...muted, name]
    const before = me.value!
    me.value = { ...before, user: { ...before.user, mutedMails } }
    callAuth('PATCH', '/me', { mutedMails })
      .send()
      .catch((error) => {
        me.value = before
        toastError(error)
      })
  }
  return (
    <Panel title="Emails" note="saved as you change them">
      {options.data?.mail === false ? (
        <Empty title="This server sends no email">
          <p>Ask the operator to set SMTP_URL.</p>
        </Empty>
      ) : (
        <ul class="body stack">
          {kinds.data?.mails.map(({ name, title }) => (
            <li key={name}>
              <label class="row">
                <input
                  type="checkbox"
                  checked={!muted.includes(name)}
                  onInput={(event) => toggle(name, event.currentTarget.checked)}
                />
                {title}
              </label>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  )
}
