// The passkeys of a person: add, rename, remove.
import {
  type Call,
  callAuth,
  Dialog,
  Empty,
  Field,
  Form,
  hasPasskeys,
  Loaded,
  makePasskey,
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
type Options = Parameters<typeof makePasskey>[0]

export function Passkeys() {
  const list = useQuery(callAuth<{ passkeys: Passkey[] }>('GET', '/passkeys'))
  const adding = useDialog()
  const button = hasPasskeys() && (
    <button type="button" onClick={adding.open}>
      Add a passkey
    </button>
  )
  return (
    <Panel title="Passkeys" note="a finger, a face or a PIN instead of a password" actions={button}>
      <Loaded of={list}>
        {({ passkeys }) => (
          <Table
            label="Passkeys"
            rows={passkeys}
            keyOf={({ id }) => id}
            columns={[
              { name: 'Name', cell: ({ name }) => <b>{name}</b> },
              { name: 'Made', wide: true, cell: ({ createdAt }) => <Time at={createdAt} form="date" /> },
              {
                name: 'Last used',
                cell: ({ lastUsedAt }) => (lastUsedAt ? <Time at={lastUsedAt} /> : <span class="soft">never</span>),
              },
              { name: 'Actions', actions: true, cell: (it) => <Actions of={it} done={list.refetch} /> },
            ]}
            empty={
              <Empty title="No passkey yet">
                <p>The safest and quickest way in: nothing to type.</p>
              </Empty>
            }
          />
        )}
      </Loaded>
      <Dialog of={adding} title="Add a passkey">
        <Form
          call={(values) => registration(values.name || 'Passkey', proofFrom(values))}
          submit="Ask this device"
          cancel={adding.close}
          done={() => {
            adding.close()
            toast('The passkey is added.')
            list.refetch()
          }}
        >
          <Field name="name" label="Name" placeholder="Laptop" hint="So that you know it again." autoFocus />
          <ProofField />
        </Form>
      </Dialog>
    </Panel>
  )
}

/** Asks the server for a challenge, the device for a passkey, and gives it to the server. */
function registration(name: string, proof: object): Call<Passkey> {
  const made: Call<Passkey> = {
    key: name,
    curl: null,
    from: () => made,
    async send() {
      const options = await callAuth<Options>('POST', '/passkeys/register/options', proof).send()
      const response = await makePasskey(options).catch((error) => {
        throw passkeyProblem(error)
      })
      return callAuth<Passkey>('POST', '/passkeys', { name, response }).send()
    },
  }
  return made
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
          <p>Nobody can sign in with it any more. Remove it on the device too.</p>
          <ProofField />
        </Form>
      </Dialog>
    </>
  )
}
