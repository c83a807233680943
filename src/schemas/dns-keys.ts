// Keys with which standard DNS clients sign updates and transfers.
import { Type } from '@sinclair/typebox'
import { Body, Choice, ListOf, ListQuery, Named, Nullable, Timestamp } from './common.ts'
import { DnsRecordType, ZoneParams } from './dns-records.ts'
import { zonePartFields } from './tokens.ts'

export const dnsKeyPurposes = ['update', 'transfer'] as const

const fields = {
  id: Type.String({ description: 'key_…' }),
  domain: Type.String(),
  name: Type.String(),
  purpose: Choice(dnsKeyPurposes, { description: 'Whether it signs updates (RFC 2136) or transfers of the zone' }),
  names: Nullable(Type.Array(Type.String(), { description: 'Patterns of the names that it may update; null: all' })),
  types: Nullable(Type.Array(Named(DnsRecordType), { description: 'Types that it may update; null: all' })),
  notify: Type.Array(Type.String(), {
    description: 'Secondaries of yours that are told of every change of the zone, signed by this key: address and port',
  }),
  keyName: Type.String({ description: 'The name of the key in messages of the DNS' }),
  algorithm: Choice(['hmac-sha256'] as const),
  createdAt: Timestamp,
  lastUsedAt: Nullable(Timestamp),
}

const example = {
  id: 'key_01jcqk7d5n0hvt8w3mx2s6ra',
  domain: 'example.com',
  name: 'acme',
  purpose: 'update',
  names: ['_acme-challenge', '_acme-challenge.*'],
  types: ['TXT'],
  notify: [],
  keyName: 'acme.01jcqk7d5n0hvt8w3mx2s6ra',
  algorithm: 'hmac-sha256',
  createdAt: '2026-11-21T09:33:00.000Z',
  lastUsedAt: null,
}

export const DnsKey = Type.Object(fields, {
  $id: 'DnsKey',
  description: 'A key of a zone (TSIG, RFC 8945), without its secret',
  examples: [example],
})

export const DnsKeyWithSecret = Type.Object(
  { ...fields, secret: Type.String({ description: 'Base64; shown in this answer and never again' }) },
  {
    $id: 'DnsKeyWithSecret',
    description: 'A new key of a zone with its secret',
    examples: [{ ...example, secret: 'bm90IGEgc2VjcmV0IG9mIGFueWJvZHkgYXQgYWxsIQ==' }],
  },
)

export const CreateDnsKey = Body(
  {
    name: Type.String({
      pattern: '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$',
      description: 'must be 1 to 63 lower-case letters, digits and inner hyphens; unique in the zone',
    }),
    purpose: Type.Optional(Choice(dnsKeyPurposes, { default: 'update' })),
    ...zonePartFields,
    notify: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 60 }), {
        maxItems: 4,
        description:
          'For the purpose transfer: IP addresses, with or without ports, of secondaries that are told of every change',
      }),
    ),
  },
  {
    $id: 'CreateDnsKey',
    examples: [{ name: 'acme', names: ['_acme-challenge', '_acme-challenge.*'], types: ['TXT'] }],
  },
)

export const DnsKeyParams = Type.Object({
  ...ZoneParams.properties,
  id: Type.String({ description: 'key_…' }),
})
export const DnsKeyList = ListOf('keys', DnsKey)
export const DnsKeyQuery = ListQuery({})
