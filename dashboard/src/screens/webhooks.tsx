// The webhooks of the account, and the dialog that creates one.
import { useState } from 'preact/hooks'
import { call, Dialog, go, ListPage, type Schemas, Time, useDialog, useList } from '../kit/index.ts'
import { SecretOnce } from './parts/secret.tsx'
import { WebhookState } from './parts/webhook-actions.tsx'
import { WebhookForm } from './parts/webhook-forms.tsx'

type Webhook = Schemas['Webhook']

export default function Webhooks() {
  const list = useList(call('get', '/webhooks', { params: { query: { limit: 50 } } }), { on: ['webhook.disabled'] })
  const creating = useDialog()
  return (
    <>
      <ListPage
        title="Webhooks"
        panel="All webhooks"
        create={{ text: 'New webhook', scope: 'webhooks:write', open: creating.open }}
        of={list}
        keyOf={(hook: Webhook) => hook.id}
        columns={[
          {
            name: 'URL',
            cell: ({ id, url }) => (
              <a href={`/webhooks/${id}`}>
                <code>{url}</code>
              </a>
            ),
          },
          { name: 'State', cell: ({ active }) => <WebhookState active={active} /> },
          { name: 'Events', wide: true, cell: ({ events }) => <span class="soft">{events.join(', ')}</span> },
          { name: 'Created', wide: true, cell: ({ createdAt }) => <Time at={createdAt} /> },
        ]}
        empty={{
          title: 'No webhooks yet',
          text: 'Berth calls a webhook when something happens, for example when a deployment is ready or a certificate fails.',
        }}
      />
      <Dialog of={creating} title="New webhook" wide>
        <NewWebhook close={creating.close} />
      </Dialog>
    </>
  )
}

function NewWebhook({ close }: { close(): void }) {
  const [created, setCreated] = useState<Schemas['WebhookWithSecret'] | null>(null)
  if (created) {
    return (
      <SecretOnce secret={created.secret} what="signing secret" of={{ close: () => go(`/webhooks/${created.id}`) }}>
        <p>
          Events go to <code>{created.url}</code> now. Verify their signatures with this secret:{' '}
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
      submit="Create the webhook"
      cancel={close}
      done={setCreated}
    />
  )
}
