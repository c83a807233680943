// The actions on a webhook: test, turn on or off, change, rotate its secret, delete.
import { useState } from 'preact/hooks'
import {
  Act,
  type Call,
  ConfirmButton,
  call,
  Dialog,
  Form,
  go,
  type Query,
  type Schemas,
  Select,
  State,
  toast,
  useDialog,
} from '../../kit/index.ts'
import { SecretOnce } from './secret.tsx'
import { overlaps } from './token-forms.tsx'
import { WebhookForm } from './webhook-forms.tsx'

type Webhook = Schemas['Webhook']

const changeOf = (id: string, body: Schemas['ChangeWebhook']) =>
  call('patch', '/webhooks/{id}', { params: { path: { id } }, body })

export const WebhookState = ({ active }: { active: boolean }) => (
  <State is={active ? 'ready' : 'off'}>{active ? 'On' : 'Off'}</State>
)

type ActionsProps = { query: Query<Webhook>; hook: Webhook; reread(): void }

export function WebhookActions({ query, hook, reread }: ActionsProps) {
  const [changing, rotating] = [useDialog(), useDialog()]
  const { id, active, url } = hook
  const params = { path: { id } }
  return (
    <>
      <Act
        call={call('post', '/webhooks/{id}/ping', { params })}
        text="Send a test"
        done={(created) => {
          reread()
          go(`/webhooks/${id}?delivery=${created.id}`)
        }}
      />
      <Act
        call={changeOf(id, { active: !active })}
        text={active ? 'Turn off' : 'Turn on'}
        optimistic={() => query.set({ ...hook, active: !active })}
        done={reread}
      />
      <button type="button" onClick={changing.open}>
        Change
      </button>
      <button type="button" onClick={rotating.open}>
        New secret
      </button>
      <ConfirmButton
        text="Delete"
        kind="danger"
        title="Delete the webhook?"
        action="Delete the webhook"
        call={call('delete', '/webhooks/{id}', { params }) as Call<unknown>}
        done={() => {
          toast('The webhook is deleted.')
          go('/webhooks')
        }}
      >
        <p>
          <code>{url}</code> gets no more events, and its deliveries are deleted. To pause it, turn it off instead.
        </p>
      </ConfirmButton>
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
    </>
  )
}

function NewSecret({ id, close }: { id: string; close(): void }) {
  const [secret, setSecret] = useState<string | null>(null)
  if (secret) return <SecretOnce secret={secret} what="signing secret" of={{ close }} />
  return (
    <Form
      call={({ overlapSeconds }) =>
        call('post', '/webhooks/{id}/rotate-secret', {
          params: { path: { id } },
          body: { overlapSeconds: Number(overlapSeconds) },
        })
      }
      submit="Create a new secret"
      cancel={close}
      done={(created) => setSecret(created.secret)}
    >
      <Select
        name="overlapSeconds"
        label="Old secret stops signing"
        value="86400"
        options={overlaps}
        hint="Until then, deliveries carry both signatures."
      />
    </Form>
  )
}
