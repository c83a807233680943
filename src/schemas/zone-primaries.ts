// The external nameserver that a zone follows.
import { Type } from '@sinclair/typebox'
import { Body, Nullable, Timestamp } from './common.ts'

export const ZonePrimary = Type.Object(
  {
    domain: Type.String(),
    primary: Type.String({ description: 'Address and port' }),
    keyName: Nullable(Type.String({ description: 'The key (TSIG, hmac-sha256) that requests are signed with' })),
    serial: Nullable(Type.Integer({ description: 'Serial of the version at the primary that was taken over' })),
    checkedAt: Nullable(Timestamp),
    currentAt: Nullable(Timestamp),
    nextCheckAt: Timestamp,
    error: Nullable(Type.String({ description: 'Why the last look came to nothing; the records stay as they were' })),
    createdAt: Timestamp,
  },
  {
    $id: 'ZonePrimary',
    description: 'The nameserver elsewhere whose zone a zone here follows',
    examples: [
      {
        domain: 'example.com',
        primary: '192.0.2.1:53',
        keyName: 'transfer.example.com',
        serial: 2026112201,
        checkedAt: '2026-11-22T09:33:00.000Z',
        currentAt: '2026-11-22T09:33:00.000Z',
        nextCheckAt: '2026-11-22T09:43:00.000Z',
        error: null,
        createdAt: '2026-11-22T09:30:00.000Z',
      },
    ],
  },
)

export const PutZonePrimary = Body(
  {
    primary: Type.String({
      minLength: 1,
      maxLength: 60,
      description: 'IP address of the primary, with or without a port: 192.0.2.1, 192.0.2.1:5353, [2001:db8::1]:53',
    }),
    keyName: Type.Optional(
      Type.String({
        pattern: '^[A-Za-z0-9_-]{1,63}(\\.[A-Za-z0-9_-]{1,63})*\\.?$',
        maxLength: 253,
        description: 'must be the name of the key at the primary',
      }),
    ),
    secret: Type.Optional(
      Type.String({
        pattern: '^[A-Za-z0-9+/]{16,200}={0,2}$',
        description: 'must be the secret of the key (hmac-sha256) in base64; it is never shown again',
      }),
    ),
  },
  {
    $id: 'PutZonePrimary',
    examples: [
      {
        primary: '192.0.2.1',
        keyName: 'transfer.example.com',
        secret: 'bm90IGEgc2VjcmV0IG9mIGFueWJvZHkgYXQgYWxsIQ==',
      },
    ],
  },
)
