// What can be done with a webhook: try it, turn it off, change it, give it a new secret, delete it.
import { useState } from 'preact/hooks'
import {
  type Call,
  Confirm,
  call,
  Dialog,
  Form,
  go,
  type Query,
  type Schemas,
  Select,
  State,
  toast,
  toastError,
  useDialog,
} from '../../kit/index.ts'
import { Act } from './act.tsx'
import { SecretOnce } from './secret.tsx'
import { WebhookForm } from './webhook-forms.tsx'

type Webhook = Schemas['Webhook']

/** Also shown as curl. */
export const pingOf = (id: string) => call('post', '/webhooks/{id}/ping', { params: { path: { id } } })
export const changeOf = (id: string, body: Schemas['ChangeWebhook']) =>
  call('patch', '/webhooks/{id}', { params: { path: { id } }, body })

export const WebhookState = ({ active }: { active: boolean }) => (
  <State is={active ? 'ready' : 'off'}>{active ? 'On' : 'Off'}</State>
)

type ActionsProps = { query: Query<Webhook>; hook: Webhook; reread(): void }

export function WebhookActions({ query, hook, reread }: ActionsProps) {
  const [changing, rotating, deleting] = [useDialog(), useDialog(), useDialog()]
  const { id, active, url } = hook
  const params = { path: { id } }
  function toggle(): void {
    const undo = query.set({ ...hook, active: !active })
    changeOf(id, { active: !active })
      .send()
      .then(reread, (error) => {
        undo()
        toastError(error)
      })
  }
  return (
    <>
      <Act
        call={pingOf(id)}
        text="Send a test"
        done={(made) => {
          reread()
          go(`/webhooks/${id}?delivery=${made.id}`)
        }}
      />
      <button type="button" onClick={toggle}>
        {active ? 'Turn off' : 'Turn on'}
      </button>
      <button type="button" onClick={changing.open}>
        Change
      </button>
      <button type="button" onClick={rotating.open}>
        New secret
      </button>
      <button type="button" class="danger" onClick={deleting.open}>
        Delete
      </button>
      <Dialog of={changing} title="Change the webhook" wide>
        <WebhookForm
          of={hook}
          call={(body) => changeOf(id, body)}
          submit="Change the webhook"
          cancel={changing.close}
          done={(changed) => {
            query.set(changed)
            changing.close()
          }}
        />
      </Dialog>
      <Dialog of={rotating} title="New signing secret">
        <NewSecret id={id} close={rotating.close} />
      </Dialog>
      <Confirm
        of={deleting}
        title="Delete the webhook?"
        action="Delete the webhook"
        call={call('delete', '/webhooks/{id}', { params }) as Call<unknown>}
        done={() => {
          toast('The webhook is deleted.')
          go('/webhooks')
        }}
      >
        <p>
          <code>{url}</code> gets no more events. Its deliveries are deleted, and what was still to be sent is not. To
          pause it, turn it off instead.
        </p>
      </Confirm>
    </>
  )
}

const overlaps = [
  { value: '0', text: 'at once' },
  { value: '3600', text: 'in an hour' },
  { value: '86400', text: 'in a day' },
  { value: '604800', text: 'in a week' },
]

function NewSecret({ id, close }: { id: string; close(): void }) {
  const [secret, keep] = useState<string | null>(null)
  if (secret) return <SecretOnce secret={secret} what="signing secret" of={{ close }} />
  return (
    <Form
      call={({ overlapSeconds }) =>
        call('post', '/webhooks/{id}/rotate-secret', {
          params: { path: { id } },
          body: { overlapSeconds: Number(overlapSeconds) },
        })
      }
      submit="Make a new secret"
      cancel={close}
      done={(made) => keep(made.secret)}
    >
      <Select
        name="overlapSeconds"
        label="The old secret stops signing"
        value="86400"
        options={overlaps}
        hint="Until then every delivery has both signatures, and one that fits is enough."
      />
    </Form>
  )
}
