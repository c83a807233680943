// DNSSEC of a zone: its keys, the records that belong at the parent, and those that are there.
import { Type } from '@sinclair/typebox'
import { Body, Choice, Named, Nullable, Timestamp } from './common.ts'

export const dnssecStates = ['UNSIGNED', 'SIGNING', 'AWAITING_DS', 'ACTIVE', 'LEAVING'] as const
export const denials = ['nsec', 'nsec3'] as const
export const zoneKeyStates = ['PUBLISHED', 'ANNOUNCED', 'ACTIVE', 'RETIRING', 'LEAVING'] as const

const Denial = Choice(denials, {
  description: 'How the zone proves that a name does not exist; `nsec3` keeps its names from being listed easily',
})

export const SigningKey = Type.Object(
  {
    tag: Type.Integer({ description: 'Key tag' }),
    algorithm: Type.Integer({ description: '13: ECDSA P-256 with SHA-256' }),
    flags: Type.Integer({ description: '257: it signs the zone and the keys' }),
    publicKey: Type.String({ description: 'Base64' }),
    state: Choice(zoneKeyStates, {
      description:
        '`PUBLISHED`: it signs, and waits for caches; `ANNOUNCED`: its DS is to be set at the parent; `ACTIVE`: the ' +
        'parent shows its DS; `RETIRING`: another key has taken its place; `LEAVING`: the zone will not be signed any more',
    }),
    createdAt: Timestamp,
  },
  { $id: 'SigningKey', description: 'A key that signs a zone' },
)

export const DsRecord = Type.Object(
  {
    text: Type.String({ description: 'The value of the DS record, ready to paste' }),
    keyTag: Type.Integer(),
    algorithm: Type.Integer(),
    digestType: Type.Integer({ description: '2: SHA-256' }),
    digest: Type.String({ description: 'Hexadecimal' }),
  },
  { $id: 'DsRecord', description: 'A DS record to set at the registrar, as text and field by field' },
)

// A provider has two or three; each makes the DNSKEY response longer.
const maxForeignKeys = 8
const maxForeignKeyCharacters = 1_000

export const ForeignKey = Type.Object(
  {
    dnskey: Type.String({ description: 'The value of the DNSKEY record' }),
    keyTag: Type.Integer(),
    ds: Nullable(Type.String({ description: 'The value of its DS record; null for a key with flags 256' })),
  },
  { $id: 'ForeignKey', description: 'A key of another provider that signs the zone too' },
)

export const ParentDs = Type.Object(
  {
    checkedAt: Nullable({ ...Timestamp, description: 'When the servers of the parent were asked last' }),
    ds: Type.Array(Type.String(), { description: 'The DS records that they showed' }),
    matches: Nullable(
      Type.Boolean({ description: 'Whether one of them is of a key of the zone; null before they were asked' }),
    ),
  },
  { $id: 'ParentDs', description: 'What the zone above shows' },
)

const example = {
  domain: 'example.com',
  enabled: true,
  state: 'AWAITING_DS',
  denial: 'nsec',
  keys: [
    {
      tag: 55648,
      algorithm: 13,
      flags: 257,
      publicKey: 'GojIhhXUN/u4v54ZQqGSnyhWJwaubCvTmeexv7bR6edbkrSqQpF64cYbcB7wNcP+e+MAnLr+Wi9xMWyQLc8NAA==',
      state: 'ANNOUNCED',
      createdAt: '2026-11-22T09:33:00.000Z',
    },
  ],
  ds: [
    {
      text: '55648 13 2 B4C8C1FE2E7477127B27115656AD6256F424625BF5C1E2770CE6D6E37DF61D17',
      keyTag: 55648,
      algorithm: 13,
      digestType: 2,
      digest: 'B4C8C1FE2E7477127B27115656AD6256F424625BF5C1E2770CE6D6E37DF61D17',
    },
  ],
  dnskey: ['257 3 13 GojIhhXUN/u4v54ZQqGSnyhWJwaubCvTmeexv7bR6edbkrSqQpF64cYbcB7wNcP+e+MAnLr+Wi9xMWyQLc8NAA=='],
  foreignKeys: [],
  parent: { checkedAt: '2026-11-22T10:43:10.000Z', ds: [], matches: false },
  nextCheckAt: '2026-11-22T10:43:20.000Z',
  reason: 'The zone is signed. Set the DS record in `ds` at the registrar of example.com; Berth finds it there.',
}

export const Dnssec = Type.Object(
  {
    domain: Type.String(),
    enabled: Type.Boolean({ description: 'Whether the zone is to be signed' }),
    state: Choice(dnssecStates, {
      description:
        '`UNSIGNED`; `SIGNING`: signed, until no cache has unsigned answers; `AWAITING_DS`: signed, and the parent has no ' +
        'DS of its key; `ACTIVE`: resolvers validate it; `LEAVING`: still signed, until no cache has a DS',
    }),
    denial: Denial,
    keys: Type.Array(Named(SigningKey), { description: 'Oldest first; two during a rollover' }),
    ds: Type.Array(Named(DsRecord), {
      description: 'What belongs at the parent; in the state `SIGNING` not before the time in `reason`',
    }),
    dnskey: Type.Array(Type.String(), {
      description:
        'The keys as values of DNSKEY records, for registrars that make the DS themselves, and for another provider that ' +
        'signs the zone too',
    }),
    foreignKeys: Type.Array(Named(ForeignKey), {
      description: 'Keys of another provider in the set of keys that we sign',
    }),
    parent: Named(ParentDs),
    nextCheckAt: Nullable({ ...Timestamp, description: 'When the parent is asked next' }),
    reason: Type.String({ description: 'What happens or has to be done next' }),
  },
  { $id: 'Dnssec', description: 'How a zone is signed (DNSSEC)', examples: [example] },
)

export const PutDnssec = Body(
  {
    enabled: Type.Boolean({ description: 'true signs the zone; false ends that, without a moment of broken answers' }),
    denial: Type.Optional(Denial),
  },
  { $id: 'PutDnssec', examples: [{ enabled: true, denial: 'nsec' }] },
)

export const ForeignKeys = Type.Object(
  { keys: Type.Array(Named(ForeignKey)) },
  { $id: 'ForeignKeys', description: 'The keys of another provider in the set of keys that we sign' },
)

export const PutForeignKeys = Body(
  {
    keys: Type.Array(
      Type.String({
        minLength: 1,
        maxLength: maxForeignKeyCharacters,
        description: 'The value of a DNSKEY record: flags, protocol 3, algorithm, and the key in base64',
      }),
      { maxItems: maxForeignKeys, description: 'All keys of the other provider; an empty list removes them' },
    ),
  },
  {
    $id: 'PutForeignKeys',
    examples: [
      { keys: ['256 3 13 GojIhhXUN/u4v54ZQqGSnyhWJwaubCvTmeexv7bR6edbkrSqQpF64cYbcB7wNcP+e+MAnLr+Wi9xMWyQLc8NAA=='] },
    ],
  },
)
