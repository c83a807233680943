// Pages of the event log: newest first for people, oldest first for programs that come back for more.
import type { Static } from '@sinclair/typebox'
import type { Db } from '../../platform/database.ts'
import { Fault } from '../../platform/errors.ts'
import { pageBounds } from '../../platform/facet-statements.ts'
import { idAt } from '../../platform/ids.ts'
import { type PageOf, type PageRequest, pageOf } from '../../platform/page.ts'
import type { EventQuery } from '../../schemas/events.ts'
import type { Actor } from '../tokens/actor.ts'
import { typesOf } from './event-types.ts'
import { type EventFilter, type EventView, viewEvent } from './events.ts'
import { listNewest, listOldest, selectSeen } from './list-statements.ts'

/** How many strings the cursors of each direction have. */
export const cursorKeys = { asc: 4, desc: 1 }

export function filterOf(query: Pick<Static<typeof EventQuery>, 'type' | 'subject'>): EventFilter {
  return { types: query.type ? typesOf(query.type) : null, subjects: query.subject ?? null }
}

// The time in an id may differ from that of the event by this much: the first is the server's, and taken earlier.
const slackMs = 60_000
// How long before it is committed an event may have got its id: no transaction takes nearly as long.
const lateMs = 10 * 60_000

const shifted = (time: Date | undefined, ms: number) => time && new Date(Math.max(0, time.getTime() + ms))

export async function listEvents(
  db: Db,
  { accountId, projectIds }: Actor,
  { types, subjects }: EventFilter,
  page: PageRequest,
): Promise<PageOf<EventView>> {
  const { since = null, until = null } = page
  const facet = subjects ? 'subject' : projectIds ? 'project' : types ? 'type' : 'account'
  const values = { accountId, types, projectIds, subjects, since, until }
  const about = { ...page, since: shifted(page.since, -slackMs), until: shifted(page.until, slackMs) }
  if (page.order === 'desc') {
    const found = await listNewest[facet](db, { ...values, ...pageBounds(about, 'evt') })
    return pageOf(found, page, viewEvent, (row) => [row.id])
  }
  const [id = '', seen = '', now = '', floor = ''] = page.after ?? []
  const before = readSeen(seen)
  // All pages of a round show what was there at its first one.
  const during = now === '' ? (await selectSeen(db, {}))[0]! : readSeen(now)
  const nextFloor = idAt('evt', new Date(Date.now() - lateMs))
  const bounds = pageBounds({ ...about, after: [id || floor] }, 'evt')
  const found = await listOldest[facet](db, {
    ...values,
    ...bounds,
    ...{ seenMax: before.max, seenOpen: before.open, max: during.max, open: during.open },
  })
  const reached = pageOf(found, page, viewEvent, (row) => [row.id])
  // The next round shows what was not there yet, also if its id is lower than those that were shown.
  const last = reached.hasMore
    ? [reached.last![0]!, seen, writeSeen(during), floor]
    : ['', writeSeen(during), '', nextFloor]
  return { ...reached, last }
}

/** What a statement saw: transactions below the first number, but the others. */
type Seen = { max: string; open: readonly string[] }

const writeSeen = ({ max, open }: Seen) => [max, ...open].join(' ')

function readSeen(text: string): Seen {
  const [max, ...open] = text === '' ? ['0'] : text.split(' ')
  if (![max!, ...open].every((number) => /^\d{1,18}$/.test(number))) throw new Fault('invalid_cursor')
  return { max: max!, open }
}
