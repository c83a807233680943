// Failed jobs, as the operator sees them.
import { Type } from '@sinclair/typebox'
import { ListOf, ListQuery, Nullable, Timestamp } from './common.ts'

export const Job = Type.Object(
  {
    id: Type.String({ description: 'A number' }),
    kind: Type.String({ description: 'What it does, such as `verify` or `mail`' }),
    key: Nullable(Type.String({ description: 'What it is about, such as a domain' })),
    attempts: Type.Integer(),
    lastError: Nullable(Type.String()),
    failedAt: Nullable({ ...Timestamp, description: 'When it was given up; null: it waits to be run' }),
  },
  {
    $id: 'Job',
    description: 'Work in the background',
    examples: [
      {
        id: '4711',
        kind: 'verify',
        key: 'dom_01jcqk9f6q0gt27r1ve8x4z3',
        attempts: 5,
        lastError: 'the database did not answer',
        failedAt: '2026-11-16T09:40:00.000Z',
      },
    ],
  },
)

export const JobParams = Type.Object({ id: Type.String() })

export const JobList = ListOf('jobs', Job)

export const JobQuery = ListQuery({})
