// The password of a person, and the one-time passwords that stand behind it.
import { useState } from 'preact/hooks'
import {
  Copy,
  CopyLine,
  callAuth,
  Dialog,
  type DialogState,
  Field,
  Form,
  Loaded,
  me,
  num,
  Panel,
  readMe,
  State,
  toast,
  useDialog,
  useQuery,
} from '../../kit/index.ts'
import { ProofField, proofFrom } from './proof.tsx'
import { qrOf } from './qr.ts'

export function Password() {
  const changing = useDialog()
  const has = me.value?.user.password
  return (
    <Panel
      title="Password"
      state={has ? <State is="ready">Set</State> : <State is="off">None</State>}
      actions={
        <button type="button" onClick={changing.open}>
          {has ? 'Change the password' : 'Set a password'}
        </button>
      }
    >
      <Dialog of={changing} title={has ? 'Change the password' : 'Set a password'}>
        <Form
          call={(values) => callAuth('PUT', '/password', { password: values.password, ...proofFrom(values) })}
          submit={has ? 'Change the password' : 'Set the password'}
          cancel={changing.close}
          done={() => {
            changing.close()
            toast('The password is set. Your other sessions have ended.')
            void readMe()
          }}
        >
          <ProofField />
          <Field
            name="password"
            label="New password"
            type="password"
            autocomplete="new-password"
            hint="At least 10 characters. All your other sessions end."
          />
        </Form>
      </Dialog>
    </Panel>
  )
}

type Totp = { enabled: boolean; recoveryCodes: number }

export function OneTimePasswords() {
  const totp = useQuery(callAuth<Totp>('GET', '/totp'))
  const [adding, renewing, removing] = [useDialog(), useDialog(), useDialog()]
  const reread = () => {
    totp.refetch()
    void readMe()
  }
  const closing = (dialog: DialogState): DialogState => ({
    ...dialog,
    close() {
      dialog.close()
      reread()
    },
  })
  const { data } = totp
  return (
    <Panel
      title="One-time passwords"
      state={data && <State is={data.enabled ? 'ready' : 'off'}>{data.enabled ? 'On' : 'Off'}</State>}
      actions={
        data?.enabled ? (
          <>
            <button type="button" onClick={renewing.open}>
              New recovery codes
            </button>
            <button type="button" class="danger" onClick={removing.open}>
              Turn off
            </button>
          </>
        ) : (
          <button type="button" onClick={adding.open}>
            Set up
          </button>
        )
      }
      pad
    >
      <Loaded of={totp}>
        {(it) => (
          <p class="soft">
            {it.enabled
              ? `Whoever signs in by your password also needs a code of your app. ${num(it.recoveryCodes)} recovery codes are left.`
              : 'An app on your telephone makes a code for each sign-in by password. Passkeys need none.'}
          </p>
        )}
      </Loaded>
      <Dialog of={closing(adding)} title="Set up one-time passwords">
        <SetUp of={closing(adding)} />
      </Dialog>
      <Dialog of={closing(renewing)} title="New recovery codes">
        <Renew of={closing(renewing)} />
      </Dialog>
      <Dialog of={removing} title="Turn off one-time passwords?">
        <Form
          call={(values) => callAuth('DELETE', '/totp', proofFrom(values))}
          submit="Turn off"
          danger
          cancel={removing.close}
          done={closing(removing).close}
        >
          <p>Your password alone is then enough to sign in.</p>
          <ProofField />
        </Form>
      </Dialog>
    </Panel>
  )
}

type Secret = { secret: string; uri: string }
type Codes = { recoveryCodes: string[] }

/** Proof, then the picture and a first code, then the recovery codes. */
function SetUp({ of }: { of: DialogState }) {
  const [made, keep] = useState<Secret | null>(null)
  const [codes, show] = useState<string[] | null>(null)
  if (codes) return <RecoveryCodes codes={codes} of={of} />
  if (!made) {
    return (
      <Form
        call={(values) => callAuth<Secret>('POST', '/totp/setup', proofFrom(values))}
        submit="Go on"
        cancel={of.close}
        done={keep}
      >
        <p>You need an app such as Aegis or Google Authenticator.</p>
        <ProofField />
      </Form>
    )
  }
  return (
    <Form
      call={({ code = '' }) => callAuth<Codes>('POST', '/totp/confirm', { code: code.replace(/\s/g, '') })}
      submit="Turn on"
      cancel={of.close}
      done={({ recoveryCodes }) => show(recoveryCodes)}
    >
      <Qr text={made.uri} />
      <p class="soft">Scan it with the app, or type this secret there:</p>
      <CopyLine text={made.secret} what="secret" />
      <Field name="code" label="The code that the app shows" autocomplete="one-time-code" mono autoFocus />
    </Form>
  )
}

function Renew({ of }: { of: DialogState }) {
  const [codes, show] = useState<string[] | null>(null)
  if (codes) return <RecoveryCodes codes={codes} of={of} />
  return (
    <Form
      call={(values) => callAuth<Codes>('POST', '/totp/recovery-codes', proofFrom(values))}
      submit="Make new codes"
      cancel={of.close}
      done={({ recoveryCodes }) => show(recoveryCodes)}
    >
      <p>The codes that you have are of no use afterwards.</p>
      <ProofField />
    </Form>
  )
}

function RecoveryCodes({ codes, of }: { codes: string[]; of: DialogState }) {
  return (
    <>
      <div class="body stack">
        <p>
          <b>Ten recovery codes, shown this once.</b> Each works once instead of a code of the app. Don’t keep them on
          your phone alone.
        </p>
        <ul class="codes secret">
          {codes.map((code) => (
            <li key={code}>
              <code>{code}</code>
            </li>
          ))}
        </ul>
      </div>
      <footer>
        <Copy text={codes.join('\n')} what="codes" />
        <button type="button" class="primary right" onClick={of.close}>
          I have kept them
        </button>
      </footer>
    </>
  )
}

function Qr({ text }: { text: string }) {
  const rows = qrOf(text)
  if (!rows) return <code>{text}</code>
  const d = rows.flatMap((row, y) => row.flatMap((on, x) => (on ? [`M${x + 4} ${y + 4}h1v1h-1z`] : []))).join('')
  const size = rows.length + 8
  return (
    <svg
      class="qr"
      viewBox={`0 0 ${size} ${size}`}
      role="img"
      aria-label="QR code for the app"
      shape-rendering="crispEdges"
    >
      <path d={d} />
    </svg>
  )
}
