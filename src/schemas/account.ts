// The caller's account, and the regions of the platform.
import { Type } from '@sinclair/typebox'
import { Timestamp } from './common.ts'

export const Account = Type.Object(
  {
    id: Type.String({ description: 'acc_…' }),
    name: Type.String(),
    createdAt: Timestamp,
    limits: Type.Object({
      requestsPerMinute: Type.Integer({ description: 'Per token' }),
      bodyBytes: Type.Integer(),
      zoneImportBytes: Type.Integer(),
    }),
    usage: Type.Object({
      projects: Type.Integer(),
      deployments: Type.Integer(),
      domains: Type.Integer(),
      records: Type.Integer(),
      openTickets: Type.Integer(),
      tokens: Type.Integer(),
      webhooks: Type.Integer(),
    }),
  },
  {
    $id: 'Account',
    description: 'The account of the calling token, its limits and what it uses',
    examples: [
      {
        id: 'acc_01jcqk5v8w0gk3xq4t7zc9me',
        name: 'demo',
        createdAt: '2026-11-14T09:29:00.000Z',
        limits: { requestsPerMinute: 600, bodyBytes: 65536, zoneImportBytes: 16777216 },
        usage: { projects: 1, deployments: 3, domains: 1, records: 4, openTickets: 0, tokens: 1, webhooks: 0 },
      },
    ],
  },
)

export const Regions = Type.Object(
  { regions: Type.Array(Type.Object({ id: Type.String(), default: Type.Boolean() })) },
  {
    $id: 'Regions',
    description: 'Where projects are built and served',
    examples: [{ regions: [{ id: 'local-1', default: true }] }],
  },
)
