// Record sets: all records with one name and type.
import { Type } from '@sinclair/typebox'
import { Body, ListOf, ListQuery, Named } from './common.ts'
import { DnsRecordQuery, DnsRecordType, ZoneParams } from './dns-records.ts'

export const DnsRrset = Type.Object(
  {
    domain: Type.String(),
    name: Type.String({ description: 'Relative to the domain, @ for the domain itself' }),
    type: Named(DnsRecordType),
    ttl: Type.Integer({ description: 'Seconds; the lowest, where records of the set differ' }),
    values: Type.Array(Type.String(), { description: 'Presentation format of the type, canonical' }),
  },
  {
    $id: 'DnsRrset',
    description: 'All records of one name and type',
    examples: [{ domain: 'example.com', name: 'www', type: 'A', ttl: 300, values: ['192.0.2.1', '192.0.2.2'] }],
  },
)

export const PutDnsRrset = Body(
  {
    values: Type.Array(Type.String({ minLength: 1, maxLength: 20_000 }), {
      minItems: 1,
      maxItems: 1000,
      description: 'Presentation format of the type',
    }),
    ttl: Type.Optional(Type.Integer({ minimum: 30, maximum: 86_400, default: 300, description: 'Seconds' })),
  },
  { $id: 'PutDnsRrset', examples: [{ values: ['192.0.2.1'], ttl: 300 }] },
)

export const DnsRrsetParams = Type.Object({
  ...ZoneParams.properties,
  name: Type.String({
    maxLength: 1020,
    description: 'Relative to the domain, @ for the domain itself, or a full name that ends in the domain',
  }),
  type: Type.String({ maxLength: 32, description: 'Type of the records, such as A' }),
})

export const DnsRrsetList = ListOf('rrsets', DnsRrset)

export const DnsRrsetQuery = ListQuery({
  type: DnsRecordQuery.properties.type,
  name: Type.Optional(Type.String({ minLength: 1, maxLength: 1020, description: 'Sets of this name only' })),
})
