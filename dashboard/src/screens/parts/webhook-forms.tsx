// Forms of webhooks: where events go, and which of them.
import { useState } from 'preact/hooks'
import { type Call, Check, Field, Form, type Schemas, Select, type Values } from '../../kit/index.ts'
import { eventGroups } from './event-types.ts'

type Fields = { url: string; events: string[] }
type Props<T> = {
  of?: Schemas['Webhook']
  call(fields: Fields): Call<T>
  submit: string
  cancel(): void
  done(made: T): void
}

export function WebhookForm<T>({ of, call, ...rest }: Props<T>) {
  return (
    <Form call={(values) => call({ url: values.url ?? '', events: eventsFrom(values) })} {...rest}>
      <Field
        name="url"
        label="Address"
        type="url"
        mono
        value={of?.url}
        placeholder="https://hooks.example.com/berth"
        hint="Gets a POST for each event, signed as Standard Webhooks says. Answer 2xx within 15 seconds."
        autoFocus
      />
      <EventFields chosen={of?.events ?? ['deployment.*']} />
    </Form>
  )
}

function EventFields({ chosen }: { chosen: readonly string[] }) {
  const [which, choose] = useState(chosen.includes('*') ? '*' : 'some')
  const options = [
    { value: 'some', text: 'Those chosen below' },
    { value: '*', text: 'All, also kinds that come later' },
  ]
  return (
    <>
      <Select name="which" label="Events" value={which} options={options} onInput={choose} />
      {which === 'some' && (
        <div class="groups">
          {eventGroups
            .filter(({ types }) => types.some((type) => type !== 'webhook.ping'))
            .map(({ title, all, types }) => (
              <div key={all}>
                <Check name={`event/${all}`} label={title} checked={chosen.includes(all)} />
                <details open={types.some((type) => chosen.includes(type))}>
                  <summary class="soft">Single ones</summary>
                  {types
                    .filter((type) => type !== 'webhook.ping')
                    .map((type) => (
                      <Check key={type} name={`event/${type}`} label={type} checked={chosen.includes(type)} />
                    ))}
                </details>
              </div>
            ))}
        </div>
      )}
    </>
  )
}

/** A single type is left out where its whole group is chosen. */
function eventsFrom(values: Values): string[] {
  if (values.which === '*') return ['*']
  const isChosen = (type: string) => values[`event/${type}`] !== undefined
  return eventGroups.flatMap(({ all, types }) => (isChosen(all) ? [all] : types.filter(isChosen)))
}
