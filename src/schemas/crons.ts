// Crons: what the platform calls on a schedule, and the results.
import { Type } from '@sinclair/typebox'
import { Choice, ListOf, ListQuery, Named, Nullable, NullableNamed, pageEnd, Timestamp } from './common.ts'
import { ProjectParams } from './projects.ts'

export const cronOutcomes = ['running', 'ok', 'failed', 'skipped'] as const

const runExample = {
  id: 'crr_01jcqk7d5n0hvt8w3mx2s6ra',
  dueAt: '2026-11-23T03:00:00.000Z',
  startedAt: '2026-11-23T03:00:00.412Z',
  outcome: 'ok',
  status: 200,
  durationMs: 87,
  error: null,
}

export const CronRun = Type.Object(
  {
    id: Type.String({ description: 'crr_…' }),
    dueAt: Timestamp,
    startedAt: Timestamp,
    outcome: Choice(cronOutcomes, {
      description: 'ok: answered with 2xx; skipped: there was nothing to call, `error` says why',
    }),
    status: Nullable(Type.Integer({ description: 'Status code of the answer; null if there was none' })),
    durationMs: Nullable(Type.Integer({ description: 'Until the end of the answer' })),
    error: Nullable(Type.String({ description: 'Why it failed or was skipped' })),
  },
  { $id: 'CronRun', description: 'One call of a cron', examples: [runExample] },
)

export const Cron = Type.Object(
  {
    id: Type.String({ description: 'crn_…' }),
    path: Type.String(),
    schedule: Type.String(),
    nextRunAt: Timestamp,
    lastRun: NullableNamed(CronRun),
  },
  {
    $id: 'Cron',
    description: 'What is called on a schedule',
    examples: [
      {
        id: 'crn_01jcqk7d5n0hvt8w3mx2s6ra',
        path: '/api/cleanup',
        schedule: '0 3 * * *',
        nextRunAt: '2026-11-24T03:00:00.000Z',
        lastRun: runExample,
      },
    ],
  },
)

export const CronList = Type.Object(
  { crons: Type.Array(Named(Cron)), ...pageEnd },
  { $id: 'CronList', description: 'All crons of the project on one page, in the order of its settings' },
)

export const CronParams = Type.Object({
  ...ProjectParams.properties,
  id: Type.String({ description: 'crn_…' }),
})
export const CronRunList = ListOf('runs', CronRun)
export const CronRunQuery = ListQuery({})
