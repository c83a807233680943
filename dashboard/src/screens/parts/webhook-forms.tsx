// The form of a webhook: its URL and its events.
import { useState } from 'preact/hooks'
import { type Call, Check, Field, Form, type Schemas, Select, type Values } from '../../kit/index.ts'
import { eventGroups } from './event-types.ts'

type Fields = { url: string; events: string[] }
type Props<T> = {
  of?: Schemas['Webhook']
  call(fields: Fields): Call<T>
  submit: string
  cancel(): void
  done(webhook: T): void
}

export function WebhookForm<T>({ of, call, ...rest }: Props<T>) {
  return (
    <Form call={(values) => call({ url: values.url ?? '', events: eventsFrom(values) })} {...rest}>
      <Field
        name="url"
        label="URL"
        type="url"
        mono
        value={of?.url}
        placeholder="https://hooks.example.com/berth"
        hint="Receives a POST per event, signed as in Standard Webhooks. Respond with 2xx within 15 seconds."
        autoFocus
      />
      <EventFields chosen={of?.events ?? ['deployment.*']} />
    </Form>
  )
}

function EventFields({ chosen }: { chosen: readonly string[] }) {
  const [which, setWhich] = useState(chosen.includes('*') ? '*' : 'some')
  const options = [
    { value: 'some', text: 'Selected below' },
    { value: '*', text: 'All, including future types' },
  ]
  return (
    <>
      <Select name="which" label="Events" value={which} options={options} onInput={setWhich} />
      {which === 'some' && (
        <div class="groups">
          {eventGroups
            .filter(({ types }) => types.some((type) => type !== 'webhook.ping'))
            .map(({ title, all, types }) => (
              <div key={all}>
                <Check name={`event/${all}`} label={title} checked={chosen.includes(all)} />
                <details open={types.some((type) => chosen.includes(type))}>
                  <summary class="soft">Choose individually</summary>
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

/** Leaves out single types if their whole group is chosen. */
function eventsFrom(values: Values): string[] {
  if (values.which === '*') return ['*']
  const isChosen = (type: string) => values[`event/${type}`] !== undefined
  return eventGroups.flatMap(({ all, types }) => (isChosen(all) ? [all] : types.filter(isChosen)))
}
