// The history of a project's production.
import { Type } from '@sinclair/typebox'
import { Body, Choice, ListOf, ListQuery, Nullable, OptionalBody, Timestamp } from './common.ts'

export const ProductionEntry = Type.Object(
  {
    deployment: Type.String({ description: 'dpl_…: what served production' }),
    deleted: Type.Boolean({
      description: 'Whether the deployment was deleted since, so that nothing can go back to it',
    }),
    reason: Choice(['deployment', 'promotion', 'rollback'] as const, {
      description: 'deployment: it took over when it was READY',
    }),
    by: Nullable(
      Type.String({ description: 'Who promoted it or rolled back to it, as `actor` of events; null for a deployment' }),
    ),
    since: Timestamp,
    servedAt: Nullable({
      ...Timestamp,
      description: 'When every visitor got it; null while edges still send some to what served before',
    }),
    until: Nullable({ ...Timestamp, description: 'When another one took over; null for what serves production now' }),
    waitingFor: Type.Array(Type.String(), {
      description:
        'Names of the nodes whose edge still sends visitors to what served before; empty once `servedAt` is set',
    }),
  },
  {
    $id: 'ProductionEntry',
    description: 'A time in which a deployment served production',
    examples: [
      {
        deployment: 'dpl_01jcqk6a7v0gd9b2m4tzr8xe',
        deleted: false,
        reason: 'rollback',
        by: 'tok_01jcqk4m1p0g3c8w5z7xn2va',
        since: '2026-11-19T09:30:00.000Z',
        servedAt: '2026-11-19T09:30:00.041Z',
        until: null,
        waitingFor: [],
      },
    ],
  },
)

export const ProductionEntryList = ListOf('production', ProductionEntry)
export const ProductionQuery = ListQuery({})

export const RollBack = OptionalBody(
  Body(
    {
      to: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: 64,
          description: 'dpl_…: one that served production before; left out, the one that did before the present one',
        }),
      ),
    },
    { $id: 'RollBack', examples: [{ to: 'dpl_01jcqk6a7v0gd9b2m4tzr8xe' }] },
  ),
)
