// Your password, and the one-time passwords required with it.
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
            toast('Password saved. Your other sessions are signed out.')
            void readMe()
          }}
        >
          <ProofField />
          <Field
            name="password"
            label="New password"
            type="password"
            autocomplete="new-password"
            hint="At least 10 characters. Signs out your other sessions."
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
              ? `Signing in with your password also needs a code from your app. Recovery codes left: ${num(it.recoveryCodes)}.`
              : 'An app on your phone generates a code for each sign-in with your password. Passkeys need none.'}
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
          <p>Your password alone will be enough to sign in.</p>
          <ProofField />
        </Form>
      </Dialog>
    </Panel>
  )
}

type Secret = { secret: string; uri: string }
type Codes = { recoveryCodes: string[] }

/** Asks for proof, then shows the QR code and asks for a first code, then shows the recovery codes. */
function SetUp({ of }: { of: DialogState }) {
  const [created, setCreated] = useState<Secret | null>(null)
  const [codes, setCodes] = useState<string[] | null>(null)
  if (codes) return <RecoveryCodes codes={codes} of={of} />
  if (!created) {
    return (
      <Form
        call={(values) => callAuth<Secret>('POST', '/totp/setup', proofFrom(values))}
        submit="Continue"
        cancel={of.close}
        done={setCreated}
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
      done={({ recoveryCodes }) => setCodes(recoveryCodes)}
    >
      <Qr text={created.uri} />
      <p class="soft">Scan this with the app, or enter this secret:</p>
      <CopyLine text={created.secret} what="secret" />
      <Field name="code" label="Code from the app" autocomplete="one-time-code" mono autoFocus />
    </Form>
  )
}

function Renew({ of }: { of: DialogState }) {
  const [codes, setCodes] = useState<string[] | null>(null)
  if (codes) return <RecoveryCodes codes={codes} of={of} />
  return (
    <Form
      call={(values) => callAuth<Codes>('POST', '/totp/recovery-codes', proofFrom(values))}
      submit="Create new codes"
      cancel={of.close}
      done={({ recoveryCodes }) => setCodes(recoveryCodes)}
    >
      <p>Your current codes will stop working.</p>
      <ProofField />
    </Form>
  )
}

function RecoveryCodes({ codes, of }: { codes: string[]; of: DialogState }) {
  return (
    <>
      <div class="body stack">
        <p>
          <b>Ten recovery codes, shown only once.</b> Each replaces a code from the app once. Don't store them only on
          your phone.
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
          I saved them
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
