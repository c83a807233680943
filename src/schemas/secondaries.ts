// Secondaries: which of them lag behind a zone, and why.
import { Type } from '@sinclair/typebox'
import { Nullable, Timestamp } from './common.ts'

/** Why a nameserver reported no serial. */
export const probeErrors = ['timeout', 'refused', 'unreachable', 'not_served', 'invalid_answer'] as const

/** Why a nameserver doesn't serve the current zone. */
export const lagReasons = [...probeErrors, 'not_notified', 'not_transferred', 'rejected', 'behind'] as const

export const LagError = Type.Unsafe<(typeof lagReasons)[number] | null>({
  type: ['string', 'null'],
  enum: [...lagReasons, null],
  description:
    'Why it does not serve the serial of the database. not_notified: it acknowledges no NOTIFY; not_transferred: it was ' +
    'told and has not asked for the zone; rejected: it was sent the zone and does not serve it; behind: the change is on ' +
    'its way',
})

export const SecondaryStatus = Type.Object(
  {
    address: Type.String({ description: 'Address and port, as a key of the zone names it in `notify`' }),
    serial: Nullable(
      Type.Integer({ description: 'Serial that it served when it was last asked; null when it told none' }),
    ),
    behind: Nullable(Type.Integer({ description: 'By how many versions it lags; null when it told no serial' })),
    current: Type.Boolean({ description: 'Whether that is the serial of the database' }),
    error: LagError,
    reason: Nullable(Type.String({ description: 'The same in words' })),
    since: Nullable({ ...Timestamp, description: 'Since when it lags; null where that is not known' }),
    checkedAt: Nullable({
      ...Timestamp,
      description: 'When it was last asked: after every change until it serves it; null before the first time',
    }),
  },
  { $id: 'SecondaryStatus', description: 'What a secondary of your own serves of a zone' },
)

export const SecondaryLag = Type.Object(
  {
    domain: Type.String(),
    secondary: Type.String({ description: 'Address and port' }),
    serial: Type.Integer({ description: 'Serial of the zone in the database' }),
    served: Nullable(Type.Integer({ description: 'Serial that the secondary serves; null when it did not tell' })),
    error: LagError,
    reason: Nullable(Type.String({ description: 'The same in words' })),
    since: Timestamp,
  },
  {
    $id: 'SecondaryLag',
    description: 'A secondary that does not serve a zone as it is here, or does so again',
    examples: [
      {
        domain: 'example.com',
        secondary: '192.0.2.53:53',
        serial: 7,
        served: 6,
        error: 'not_notified',
        reason: 'It acknowledges no NOTIFY, so it does not know of the change yet.',
        since: '2026-11-16T12:00:00.000Z',
      },
    ],
  },
)
