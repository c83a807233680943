// The webhooks of the account: where events are sent.
import { useState } from 'preact/hooks'
import { call, Dialog, go, ListPage, type Schemas, Time, useDialog, useList } from '../kit/index.ts'
import { SecretOnce } from './parts/secret.tsx'
import { WebhookState } from './parts/webhook-actions.tsx'
import { WebhookForm } from './parts/webhook-forms.tsx'

type Webhook = Schemas['Webhook']

export default function Webhooks() {
  const list = useList(call('get', '/webhooks', { params: { query: { limit: 50 } } }), { on: ['webhook.disabled'] })
  const making = useDialog()
  return (
    <>
      <ListPage
        title="Webhooks"
        panel="Addresses that get events"
        make={{ text: 'New webhook', scope: 'webhooks:write', open: making.open }}
        of={list}
        keyOf={(hook: Webhook) => hook.id}
        columns={[
          {
            name: 'Address',
            cell: ({ id, url }) => (
              <a href={`/webhooks/${id}`}>
                <code>{url}</code>
              </a>
            ),
          },
          { name: 'State', cell: ({ active }) => <WebhookState active={active} /> },
          { name: 'Events', wide: true, cell: ({ events }) => <span class="soft">{events.join(', ')}</span> },
          { name: 'Made', wide: true, cell: ({ createdAt }) => <Time at={createdAt} /> },
        ]}
        empty={{
          title: 'No webhook yet',
          text: 'A webhook is called when something happens: a deployment is ready, a certificate fails, a ticket is answered.',
        }}
      />
      <Dialog of={making} title="New webhook" wide>
        <NewWebhook close={making.close} />
      </Dialog>
    </>
  )
}

function NewWebhook({ close }: { close(): void }) {
  const [made, keep] = useState<Schemas['WebhookWithSecret'] | null>(null)
  if (made) {
    return (
      <SecretOnce secret={made.secret} what="signing secret" of={{ close: () => go(`/webhooks/${made.id}`) }}>
        <p>
          Events go to <code>{made.url}</code> from now on. Check the signature of each with this secret:{' '}
          <a href="/docs/guides/webhooks" target="_blank" rel="noreferrer">
            receivers in TypeScript, Python and Go
          </a>
          .
        </p>
      </SecretOnce>
    )
  }
  return (
    <WebhookForm
      call={(body) => call('post', '/webhooks', { body })}
      submit="Make the webhook"
      cancel={close}
      done={keep}
    />
  )
}
