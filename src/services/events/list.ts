// Pages of the event log: newest first for people, oldest first for programs that poll.
import type { Static } from '@sinclair/typebox'
import type { Db } from '../../platform/database/database.ts'
import { idBounds, type PageOf, type PageRequest, pageOf } from '../../platform/database/page.ts'
import { Fault } from '../../platform/errors.ts'
import { idAt } from '../../platform/ids.ts'
import type { EventQuery } from '../../schemas/events.ts'
import type { Actor } from '../identity/index.ts'
import { typesOf } from './event-types.ts'
import { type EventFilter, type EventView, type LoggedRow, viewEvent } from './events.ts'
import { eventPage, selectVisibility } from './list-statements.ts'

/** The number of strings in cursors of each order. */
export const cursorKeys = { asc: 4, desc: 1 }

export function filterOf(query: Pick<Static<typeof EventQuery>, 'type' | 'subject'>): EventFilter {
  return { types: query.type ? typesOf(query.type) : null, subjects: query.subject ?? null }
}

/** What a statement could see, as event numbers: transactions below `max` except those in `open`. */
type Visibility = { max: string; open: readonly string[] }

const nothing: Visibility = { max: '0', open: [] }
const everything: Visibility = { max: '9'.repeat(18), open: [] }

/** Reads events after an id in the order of the page; `fresh` ones are visible now but were not before. */
type ReadPage = (
  after: string,
  limit: number,
  seen: { before: Visibility; now: Visibility },
) => Promise<(LoggedRow & { fresh: boolean })[]>

export async function listEvents(
  db: Db,
  { accountId, projectIds }: Actor,
  { types, subjects }: EventFilter,
  page: PageRequest,
): Promise<PageOf<EventView>> {
  const facet = subjects ? 'subject' : projectIds ? 'project_id' : types ? 'type' : 'account_id'
  const read: ReadPage = (after, limit, { before, now }) =>
    eventPage[page.order][facet](db, {
      ...{ accountId, types, projectIds, subjects, after, limit },
      ...{ seenMax: before.max, seenOpen: before.open, max: now.max, open: now.open },
    })
  if (page.order === 'asc') return listOldest(page, read, async () => (await selectVisibility(db, {}))[0]!)
  const { above = '', below = 'evt_z' } = idBounds(page, 'evt')
  const found = await read(below, page.limit + 1, { before: nothing, now: everything })
  return pageFrom(found, page, (id) => id > above)
}

function pageFrom(found: LoggedRow[], page: PageRequest, isWithin: (id: string) => boolean): PageOf<EventView> {
  const within = found.filter(({ id }) => isWithin(id))
  return pageOf(within, page, viewEvent, (row) => [row.id])
}

// The maximum time between an event's id and its commit; no transaction takes nearly as long.
const maxCommitDelayMs = 10 * 60_000
// How many events that were shown before are skipped at once, and by one request.
const skipBatch = 1_000
const maxSkipped = 20_000

/**
 * Lists in rounds: all pages of a round show what was visible at its first page. The next round shows what was not,
 * even events with lower ids whose transactions were slow.
 */
async function listOldest(
  page: PageRequest,
  read: ReadPage,
  readVisibility: () => Promise<Visibility>,
): Promise<PageOf<EventView>> {
  const [id = '', seen = '', shown = '', floor = ''] = page.after ?? []
  const nextFloor = idAt('evt', new Date(Date.now() - maxCommitDelayMs))
  const before = parseVisibility(seen)
  const now = shown === '' ? await readVisibility() : parseVisibility(shown)
  const { above = '', below = 'evt_z' } = idBounds({ ...page, after: [id || floor] }, 'evt')
  const needed = page.limit + 1
  const found: LoggedRow[] = []
  let after = above
  let isEnd = false
  for (let skipped = 0; found.length < needed && !isEnd && skipped < maxSkipped; ) {
    const limit = skipped === 0 ? needed : skipBatch
    const rows = await read(after, limit, { before, now })
    found.push(...rows.filter(({ fresh }) => fresh))
    after = rows.at(-1)?.id ?? after
    isEnd = rows.length < limit || after >= below
    skipped += rows.length
  }
  const reached = pageFrom(found, page, (id) => id < below)
  const hasMore = reached.hasMore || !isEnd
  const last = hasMore
    ? [reached.hasMore ? reached.last![0]! : after, seen, formatVisibility(now), floor]
    : ['', formatVisibility(now), '', nextFloor]
  return { ...reached, hasMore, last }
}

const formatVisibility = ({ max, open }: Visibility) => [max, ...open].join(' ')

function parseVisibility(text: string): Visibility {
  if (text === '') return nothing
  const [max, ...open] = text.split(' ')
  if (![max!, ...open].every((number) => /^\d{1,18}$/.test(number))) throw new Fault('invalid_cursor')
  return { max: max!, open }
}
