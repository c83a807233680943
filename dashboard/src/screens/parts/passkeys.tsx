// Your passkeys: add, rename, remove.
import {
  type Call,
  callAuth,
  createPasskey,
  Dialog,
  Empty,
  Field,
  Form,
  hasPasskeys,
  Loaded,
  Panel,
  passkeyProblem,
  Table,
  Time,
  toast,
  useDialog,
  useQuery,
} from '../../kit/index.ts'
import { ProofField, proofFrom } from './proof.tsx'

type Passkey = { id: string; name: string; createdAt: string; lastUsedAt: string | null }
type Options = Parameters<typeof createPasskey>[0]

export function Passkeys() {
  const list = useQuery(callAuth<{ passkeys: Passkey[] }>('GET', '/passkeys'))
  const adding = useDialog()
  const button = hasPasskeys() && (
    <button type="button" onClick={adding.open}>
      Add a passkey
    </button>
  )
  return (
    <Panel title="Passkeys" note="a fingerprint, face or PIN instead of a password" actions={button}>
      <Loaded of={list}>
        {({ passkeys }) => (
          <Table
            label="Passkeys"
            rows={passkeys}
            keyOf={({ id }) => id}
            columns={[
              { name: 'Name', cell: ({ name }) => <b>{name}</b> },
              { name: 'Created', wide: true, cell: ({ createdAt }) => <Time at={createdAt} form="date" /> },
              {
                name: 'Last used',
                cell: ({ lastUsedAt }) => (lastUsedAt ? <Time at={lastUsedAt} /> : <span class="soft">never</span>),
              },
              { name: 'Actions', actions: true, cell: (it) => <Actions of={it} done={list.refetch} /> },
            ]}
            empty={
              <Empty title="No passkeys yet">
                <p>The safest and fastest way to sign in.</p>
              </Empty>
            }
          />
        )}
      </Loaded>
      <Dialog of={adding} title="Add a passkey">
        <Form
          call={(values) => registration(values.name || 'Passkey', proofFrom(values))}
          submit="Continue"
          cancel={adding.close}
          done={() => {
            adding.close()
            toast('Passkey added.')
            list.refetch()
          }}
        >
          <Field name="name" label="Name" placeholder="Laptop" hint="To recognize it later." autoFocus />
          <ProofField />
        </Form>
      </Dialog>
    </Panel>
  )
}

/** Gets a challenge from the server, creates a passkey on the device, and registers it with the server. */
function registration(name: string, proof: object): Call<Passkey> {
  const registering: Call<Passkey> = {
    key: name,
    curl: null,
    from: () => registering,
    async send() {
      const options = await callAuth<Options>('POST', '/passkeys/register/options', proof).send()
      const response = await createPasskey(options).catch((error) => {
        throw passkeyProblem(error)
      })
      return callAuth<Passkey>('POST', '/passkeys', { name, response }).send()
    },
  }
  return registering
}

function Actions({ of, done }: { of: Passkey; done(): void }) {
  const [renaming, removing] = [useDialog(), useDialog()]
  const path = `/passkeys/${of.id}`
  return (
    <>
      <button type="button" class="quiet" aria-label={`Rename ${of.name}`} onClick={renaming.open}>
        Rename
      </button>
      <button type="button" class="quiet danger" aria-label={`Remove ${of.name}`} onClick={removing.open}>
        Remove
      </button>
      <Dialog of={renaming} title="Rename the passkey">
        <Form
          call={({ name }) => callAuth('PATCH', path, { name })}
          submit="Rename"
          cancel={renaming.close}
          done={() => {
            renaming.close()
            done()
          }}
        >
          <Field name="name" label="Name" value={of.name} autoFocus />
        </Form>
      </Dialog>
      <Dialog of={removing} title={`Remove ${of.name}?`}>
        <Form
          call={(values) => callAuth('DELETE', path, proofFrom(values))}
          submit="Remove the passkey"
          danger
          cancel={removing.close}
          done={() => {
            removing.close()
            done()
          }}
        >
          <p>It can no longer be used to sign in. Remove it on the device too.</p>
          <ProofField />
        </Form>
      </Dialog>
    </>
  )
}
