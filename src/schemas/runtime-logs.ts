// What the servers of deployments print.
import { Type } from '@sinclair/typebox'
import { Body, Choice, Named, Nullable, pageEnd, Timestamp } from './common.ts'
import { logStreams } from './deployments.ts'

export const RuntimeLogLine = Type.Object(
  {
    seq: Type.Integer({ description: 'Grows with every line of the deployment' }),
    at: Timestamp,
    instance: Nullable(
      Type.String({
        description:
          'Number of the instance, another one on each machine that it is given to; null for lines of older versions',
      }),
    ),
    stream: Choice(logStreams, { description: 'system: a note of the platform, such as how many lines were dropped' }),
    text: Type.String(),
  },
  {
    $id: 'RuntimeLogLine',
    description: 'A line that a server printed',
    examples: [{ seq: 41, at: '2026-11-14T09:31:01.000Z', instance: '0', stream: 'stdout', text: 'GET / 200' }],
  },
)

export const RuntimeLogLines = Type.Object(
  { lines: Type.Array(Named(RuntimeLogLine)), ...pageEnd },
  { $id: 'RuntimeLogLineList', description: 'A page of lines, oldest first' },
)

export const RuntimeLogMessage = Type.Object(
  { id: Type.String({ description: 'Number of the line' }), data: Named(RuntimeLogLine) },
  { $id: 'RuntimeLogMessage', description: 'A server-sent event with a line that a server printed' },
)

export const RuntimeLogQuery = Body({
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 1000, default: 100, description: 'How many lines at most' }),
  ),
  cursor: Type.Optional(
    Type.String({
      maxLength: 2000,
      description: '`nextCursor` of the page before, or a `latestCursor` kept from earlier',
    }),
  ),
  since: Type.Optional(Type.String({ format: 'date-time', description: 'Only lines from this time on' })),
  instance: Type.Optional(Type.String({ pattern: '^\\d{1,19}$', description: 'must be the number of an instance' })),
  stream: Type.Optional(Choice(['stdout', 'stderr'] as const)),
})
