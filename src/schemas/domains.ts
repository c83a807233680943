// Custom domains: ownership, certificate, and what the caller must do for each.
import { Type } from '@sinclair/typebox'
import {
  AnyOf,
  Body,
  Choice,
  ListOf,
  ListQuery,
  Named,
  Nullable,
  NullableNamed,
  ProjectKey,
  Timestamp,
} from './common.ts'
import { TakedownNotice } from './takedowns.ts'

export const sslStates = ['PENDING', 'ISSUING', 'ACTIVE', 'ERROR', 'EXPIRED'] as const
export const verificationMethods = ['nameservers', 'txt', 'operator'] as const

const verificationExample = {
  method: null,
  txt: { name: '_berth.example.com', value: 'berth-verify=3k9m2x7q4tb8w1zc5v0n6hjd2r' },
  checkedAt: null,
  nextCheckAt: '2026-11-14T09:32:00.000Z',
  observed: { nameservers: [], txt: [], asked: [] },
  reason: null,
}

export const VerificationRecord = Type.Object(
  { name: Type.String(), value: Type.String() },
  {
    $id: 'VerificationRecord',
    description: 'TXT record that proves the ownership where the nameservers stay elsewhere',
  },
)

export const ObservedRecords = Type.Object(
  {
    nameservers: Type.Array(Type.String()),
    txt: Type.Array(Type.String(), { description: 'As the nameservers of the domain answer' }),
    asked: Type.Array(Type.String(), { description: 'Servers that told the nameservers' }),
  },
  { $id: 'ObservedRecords', description: 'What the last check found' },
)

export const DomainVerification = Type.Object(
  {
    method: Nullable(
      Choice(verificationMethods, {
        description:
          'What proved the ownership, or `operator` where the operator of the platform assigned the domain; null until then',
      }),
    ),
    txt: Named(VerificationRecord),
    checkedAt: Nullable(Timestamp),
    nextCheckAt: Nullable(Timestamp),
    observed: Named(ObservedRecords),
    reason: Nullable(
      Type.String({
        description: 'Why the last check did not find the proof; in a new domain, that nameservers alone cannot be one',
      }),
    ),
  },
  {
    $id: 'DomainVerification',
    description: 'What is expected, what was seen, and the record to add',
    examples: [verificationExample],
  },
)

export const Certificate = Type.Object(
  {
    issuer: Nullable(Type.String({ description: 'null until the first certificate is issued' })),
    serial: Nullable(Type.String()),
    notBefore: Nullable(Timestamp),
    notAfter: Nullable(Timestamp),
    sans: Type.Array(Type.String(), { description: 'Names that the certificate is for' }),
    lastError: Nullable(Type.String({ description: 'Why the last attempt failed' })),
    nextAttemptAt: Nullable(Timestamp),
  },
  {
    $id: 'Certificate',
    description: 'The certificate in service; its private key never leaves',
    examples: [
      {
        issuer: 'CN=R11,O=Let’s Encrypt,C=US',
        serial: '04b1f2a7',
        notBefore: '2026-11-14T08:40:00.000Z',
        notAfter: '2027-02-12T08:40:00.000Z',
        sans: ['example.com'],
        lastError: null,
        nextAttemptAt: '2027-01-13T08:40:00.000Z',
      },
    ],
  },
)

const RedirectStatus = Type.Unsafe<301 | 308>({
  type: 'integer',
  enum: [301, 308],
  description: '308, unless told otherwise, keeps the method of a request; with 301 browsers send a GET',
})

export const Domain = Type.Object(
  {
    name: Type.String({ description: 'Lower case, in Punycode; the key of the domain' }),
    project: Type.String(),
    verified: Type.Boolean(),
    ssl: Choice(sslStates),
    nameservers: Type.Array(Type.String(), {
      minItems: 2,
      maxItems: 2,
      description: 'Where the domain is expected to point: two nameservers of the platform, chosen for this account',
    }),
    createdAt: Timestamp,
    verification: Named(DomainVerification),
    certificate: NullableNamed(Certificate),
    verifiedAt: Nullable(Timestamp),
    redirectTo: Nullable(
      Type.String({ description: 'Domain to which visitors are sent, with path and query, once it is verified' }),
    ),
    redirectStatus: Nullable(RedirectStatus),
    takedown: Type.Optional(NullableNamed(TakedownNotice)),
  },
  {
    $id: 'Domain',
    description: 'A custom domain of a project',
    examples: [
      {
        name: 'example.com',
        project: 'hello',
        verified: false,
        ssl: 'PENDING',
        nameservers: ['ns1.berth.test', 'ns2.berth.test'],
        createdAt: '2026-11-14T09:32:00.000Z',
        verification: verificationExample,
        certificate: null,
        verifiedAt: null,
        redirectTo: null,
        redirectStatus: null,
      },
    ],
  },
)

const redirection = {
  redirectTo: Type.Optional(
    Nullable(
      Type.String({
        minLength: 1,
        maxLength: 254,
        description: 'Another domain of the account, to which visitors are sent; null for none',
      }),
    ),
  ),
  redirectStatus: Type.Optional(RedirectStatus),
}

export const CreateDomain = Body(
  {
    project: ProjectKey,
    name: Type.String({
      minLength: 1,
      maxLength: 254,
      description: 'Domain name, Unicode or Punycode, or a wildcard such as *.example.com',
    }),
    ...redirection,
  },
  {
    $id: 'CreateDomain',
    examples: [
      { project: 'hello', name: 'example.com' },
      { project: 'hello', name: 'www.example.com', redirectTo: 'example.com' },
    ],
  },
)

export const ChangeDomain = Body(
  { project: Type.Optional(ProjectKey), ...redirection },
  {
    $id: 'ChangeDomain',
    minProperties: 1,
    examples: [{ project: 'hello' }, { redirectTo: 'example.com', redirectStatus: 301 }],
  },
)

export const DomainParams = Type.Object({ name: Type.String({ maxLength: 512, description: 'Name of the domain' }) })

export const DomainList = ListOf('domains', Domain)

export const DomainQuery = ListQuery({
  project: Type.Optional(AnyOf(ProjectKey, 'Only those of these projects, by name or id')),
  verified: Type.Optional(Type.Boolean()),
  ssl: Type.Optional(AnyOf(Choice(sslStates), 'Only those whose certificate is in these states')),
  search: Type.Optional(Type.String({ minLength: 1, maxLength: 100, description: 'Part of the name' })),
})
