// The events of the account, live, with filters in the URL and the data of each event.
import { useState } from 'preact/hooks'
import {
  call,
  currentUrl,
  Empty,
  type Event,
  Facts,
  go,
  Loaded,
  live,
  More,
  Panel,
  Time,
  Top,
  useList,
} from '../kit/index.ts'
import { eventGroups } from './parts/event-types.ts'
import { Filter, Filters, FilterTime, FindBox, type Options, useFilters } from './parts/filters.tsx'
import { Json, screenOf } from './parts/json.tsx'
import { type NameOf, useNames, Who } from './parts/who.tsx'

const types: Options = {
  '': 'All types',
  ...Object.fromEntries(
    eventGroups.map(({ title, all, types: of }) => [
      title,
      { [all]: `${all} (all)`, ...Object.fromEntries(of.map((type) => [type, type])) },
    ]),
  ),
}

export default function Events() {
  const filters = useFilters('type', 'subject', 'since', 'until')
  const query = { limit: 50, ...filters } as object
  const list = useList(call('get', '/events', { params: { query } }), { on: ['*'] })
  const names = useNames()
  const isFiltered = Object.keys(filters).length > 0
  return (
    <>
      <Top title="Events" />
      <Panel
        title="What happened"
        note={live.value === 'live' ? 'newest first, updated live' : 'newest first'}
        call={list.call}
      >
        <Filters>
          <Filter name="type" label="Type" options={types} />
          <FindBox name="subject" label="About" hint="an ID or a domain" />
          <FilterTime name="since" label="From" />
          <FilterTime name="until" label="Until" />
          {isFiltered && (
            <button type="button" class="quiet" onClick={() => go(currentUrl.peek().path)}>
              Clear
            </button>
          )}
        </Filters>
        <Loaded of={list}>
          {({ events }) =>
            events.length === 0 ? (
              <Empty title={isFiltered ? 'No matching events' : 'No events yet'}>
                <p>
                  {isFiltered
                    ? 'Remove a filter, or choose a longer period.'
                    : 'Every change appears here: deployments, domains, records, tokens, people.'}
                </p>
              </Empty>
            ) : (
              <>
                <ol class="events" aria-label="Events, newest first">
                  {events.map((event) => (
                    <Row key={event.id} event={event} names={names} />
                  ))}
                </ol>
                <More of={list} />
              </>
            )
          }
        </Loaded>
      </Panel>
    </>
  )
}

type RowProps = { event: Event; names: NameOf }

function Row({ event, names }: RowProps) {
  const [open, setOpen] = useState(false)
  return (
    <li>
      <details onToggle={(toggled) => setOpen(toggled.currentTarget.open)}>
        <summary>
          <span class="soft">
            <Time at={event.createdAt} />
          </span>
          <code>{event.type}</code>
          <span class="what">{titleOf(event)}</span>
          <span class="by">
            <Who id={event.actor} names={names} plain />
          </span>
        </summary>
        {open && <Details event={event} names={names} />}
      </details>
    </li>
  )
}

function Details({ event, names }: RowProps) {
  const href = screenOf(event.subject, event.type)
  return (
    <div class="body stack">
      <Facts
        rows={[
          ['When', <Time key="when" at={event.createdAt} form="full" />],
          ['Who', <Who key="who" id={event.actor} names={names} />],
          [
            'About',
            <span key="about">
              {href ? <a href={href}>{event.subject}</a> : event.subject}{' '}
              <a class="soft" href={`/events?subject=${encodeURIComponent(event.subject)}`}>
                all events about it
              </a>
            </span>,
          ],
          ['Event', <code key="id">{event.id}</code>],
        ]}
      />
      <Json of={event.data} what="data" />
    </div>
  )
}

/** The name of the event's subject at the time. */
function titleOf({ data, subject }: Event): string {
  const it = data as Record<string, unknown>
  const names = ['subject', 'name', 'domain', 'project', 'url', 'host', 'email'].map((field) => it[field])
  const name = names.find((value) => typeof value === 'string' && value !== '')
  return String(name ?? subject)
}
