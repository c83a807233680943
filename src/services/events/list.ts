// Pages of the event log: newest first for people, oldest first for programs that come back for more.
import type { Static } from '@sinclair/typebox'
import type { Db } from '../../platform/database/database.ts'
import { idBounds, type PageOf, type PageRequest, pageOf } from '../../platform/database/page.ts'
import { Fault } from '../../platform/errors.ts'
import { idAt } from '../../platform/ids.ts'
import type { EventQuery } from '../../schemas/events.ts'
import type { Actor } from '../identity/index.ts'
import { typesOf } from './event-types.ts'
import { type EventFilter, type EventView, type Listed, viewEvent } from './events.ts'
import { eventPage, selectSeen } from './list-statements.ts'

/** How many strings the cursors of each direction have. */
export const cursorKeys = { asc: 4, desc: 1 }

export function filterOf(query: Pick<Static<typeof EventQuery>, 'type' | 'subject'>): EventFilter {
  return { types: query.type ? typesOf(query.type) : null, subjects: query.subject ?? null }
}

/** What a statement saw, in the numbers of events: transactions below the first, but those that were open. */
type Seen = { max: string; open: readonly string[] }

const nothing: Seen = { max: '0', open: [] }
const everything: Seen = { max: '9'.repeat(18), open: [] }

/** Events behind an id in the order of the page; `fresh` are those that can be seen now, and could not before. */
type Read = (
  after: string,
  limit: number,
  seen: { before: Seen; now: Seen },
) => Promise<(Listed & { fresh: boolean })[]>

export async function listEvents(
  db: Db,
  { accountId, projectIds }: Actor,
  { types, subjects }: EventFilter,
  page: PageRequest,
): Promise<PageOf<EventView>> {
  const facet = subjects ? 'subject' : projectIds ? 'project_id' : types ? 'type' : 'account_id'
  const read: Read = (after, limit, { before, now }) =>
    eventPage[page.order][facet](db, {
      ...{ accountId, types, projectIds, subjects, after, limit },
      ...{ seenMax: before.max, seenOpen: before.open, max: now.max, open: now.open },
    })
  if (page.order === 'asc') return listOldest(page, read, async () => (await selectSeen(db, {}))[0]!)
  const { above = '', below = 'evt_z' } = idBounds(page, 'evt')
  const found = await read(below, page.limit + 1, { before: nothing, now: everything })
  return pageFrom(found, page, (id) => id > above)
}

function pageFrom(found: Listed[], page: PageRequest, isWithin: (id: string) => boolean): PageOf<EventView> {
  const within = found.filter(({ id }) => isWithin(id))
  return pageOf(within, page, viewEvent, (row) => [row.id])
}

// How long before it is committed an event may have got its id: no transaction takes nearly as long.
const lateMs = 10 * 60_000
// How many events that were shown before are passed over at once, and by one request.
const passedAtOnce = 1_000
const maxPassed = 20_000

/**
 * In rounds: all pages of one show what was there at its first. The next round shows what was not, also if its id is
 * lower than those that were shown, because its transaction was slow.
 */
async function listOldest(page: PageRequest, read: Read, look: () => Promise<Seen>): Promise<PageOf<EventView>> {
  const [id = '', seen = '', shown = '', floor = ''] = page.after ?? []
  const nextFloor = idAt('evt', new Date(Date.now() - lateMs))
  const before = readSeen(seen)
  const now = shown === '' ? await look() : readSeen(shown)
  const { above = '', below = 'evt_z' } = idBounds({ ...page, after: [id || floor] }, 'evt')
  const wanted = page.limit + 1
  const found: Listed[] = []
  let after = above
  let isEnd = false
  for (let passed = 0; found.length < wanted && !isEnd && passed < maxPassed; ) {
    const limit = passed === 0 ? wanted : passedAtOnce
    const rows = await read(after, limit, { before, now })
    found.push(...rows.filter(({ fresh }) => fresh))
    after = rows.at(-1)?.id ?? after
    isEnd = rows.length < limit || after >= below
    passed += rows.length
  }
  const reached = pageFrom(found, page, (id) => id < below)
  const hasMore = reached.hasMore || !isEnd
  const last = hasMore
    ? [reached.hasMore ? reached.last![0]! : after, seen, writeSeen(now), floor]
    : ['', writeSeen(now), '', nextFloor]
  return { ...reached, hasMore, last }
}

const writeSeen = ({ max, open }: Seen) => [max, ...open].join(' ')

function readSeen(text: string): Seen {
  if (text === '') return nothing
  const [max, ...open] = text.split(' ')
  if (![max!, ...open].every((number) => /^\d{1,18}$/.test(number))) throw new Fault('invalid_cursor')
  return { max: max!, open }
}
