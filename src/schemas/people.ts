// People: members of an account, roles, invitations, and the input of the sign-in routes.
import { Type } from '@sinclair/typebox'
import { Body, Choice, ListOf, ListQuery, Named, Nullable, ProjectKey, Timestamp } from './common.ts'
import { MutedMails } from './mails.ts'
import { tokenScopes } from './tokens.ts'

export const roleNames = ['owner', 'admin', 'developer', 'viewer'] as const
export const signInMethods = ['link', 'passkey', 'password', 'oidc'] as const

/** The format that browsers accept (HTML, 4.10.5.1.5). ASCII only, so it is safe in email headers. */
export const Email = Type.String({
  minLength: 3,
  maxLength: 254,
  pattern:
    "^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$",
  description: 'must be an address such as ada@example.com',
})

/** No control characters, and none that change the direction of neighboring text. */
export const PersonName = Type.String({
  minLength: 1,
  maxLength: 100,
  pattern:
    '^[^\\s\\u0000-\\u001f\\u007f-\\u009f\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069]([^\\u0000-\\u001f\\u007f-\\u009f\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069]*[^\\s\\u0000-\\u001f\\u007f-\\u009f\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069])?$',
  description: 'must be a name without control characters or surrounding spaces',
})

/** As typed. The rules for new passwords are in services/people/password-rules.ts. */
export const Password = Type.String({ minLength: 1, maxLength: 1024 })

const projects = Nullable(
  Type.Array(Type.String(), { description: 'Projects that the person is narrowed to; null: the whole account' }),
)

const memberExample = {
  id: 'mem_01jcqk7b3n0grz5p9sc6v2x1',
  userId: 'usr_01jcqk4h2m0grz5p9sc6v2x1',
  email: 'ada@example.com',
  name: 'Ada',
  role: 'developer',
  projects: ['hello'],
  createdAt: '2026-11-14T09:32:00.000Z',
}

export const Member = Type.Object(
  {
    id: Type.String({ description: 'mem_…' }),
    userId: Type.String({ description: 'usr_…' }),
    email: Type.String(),
    name: Type.String(),
    role: Choice(roleNames),
    projects,
    createdAt: Timestamp,
  },
  { $id: 'Member', description: 'A person in the account', examples: [memberExample] },
)

const invitationFields = {
  id: Type.String({ description: 'inv_…' }),
  email: Type.String(),
  role: Choice(roleNames),
  projects,
  invitedBy: Type.String({ description: 'Id of the token (tok_…) or the person (usr_…) who invited' }),
  expiresAt: Timestamp,
  createdAt: Timestamp,
}

const invitationExample = {
  id: 'inv_01jcqk7b3n0grz5p9sc6v2x1',
  email: 'grace@example.com',
  role: 'viewer',
  projects: null,
  invitedBy: 'usr_01jcqk4h2m0grz5p9sc6v2x1',
  expiresAt: '2026-11-21T09:32:00.000Z',
  createdAt: '2026-11-14T09:32:00.000Z',
}

export const Invitation = Type.Object(invitationFields, {
  $id: 'Invitation',
  description: 'An invitation that was not accepted yet',
  examples: [invitationExample],
})

export const InvitationWithSecret = Type.Object(
  {
    ...invitationFields,
    url: Type.String({ description: 'The link to hand over; shown in this answer and never again' }),
    secret: Type.String({ description: 'What stands behind # in the link' }),
  },
  {
    $id: 'InvitationWithSecret',
    description: 'A new invitation with its link',
    examples: [
      {
        ...invitationExample,
        url: 'https://berth.example.com/setup#Zk3vQ1u8o5wq0b7pXrYtLm2nCsD4eF6gH9jKaB0cE1I',
        secret: 'Zk3vQ1u8o5wq0b7pXrYtLm2nCsD4eF6gH9jKaB0cE1I',
      },
    ],
  },
)

const ProjectsInput = Nullable(
  Type.Array(ProjectKey, {
    minItems: 1,
    maxItems: 50,
    uniqueItems: true,
    description: 'Narrows a developer or viewer to these projects',
  }),
)

export const CreateInvitation = Body(
  { email: Email, role: Choice(roleNames), projects: Type.Optional(ProjectsInput) },
  { $id: 'CreateInvitation', examples: [{ email: 'grace@example.com', role: 'viewer' }] },
)

export const ChangeMember = Body(
  { role: Type.Optional(Choice(roleNames)), projects: Type.Optional(ProjectsInput) },
  { $id: 'ChangeMember', minProperties: 1, examples: [{ role: 'viewer' }] },
)

export const MemberParams = Type.Object({ id: Type.String({ description: 'mem_…, or usr_… of the person' }) })
export const InvitationParams = Type.Object({ id: Type.String({ description: 'inv_…' }) })
export const MemberList = ListOf('members', Member)
export const InvitationList = ListOf('invitations', Invitation)
export const MemberQuery = ListQuery({})

export const MemberRole = Type.Object(
  {
    name: Choice(roleNames),
    description: Type.String(),
    scopes: Type.Array(Choice(tokenScopes)),
    byProject: Type.Boolean({ description: 'Whether members with it may be narrowed to projects' }),
  },
  { $id: 'MemberRole', description: 'A name for a set of scopes' },
)

export const MemberRoles = Type.Object(
  { roles: Type.Array(Named(MemberRole)) },
  {
    $id: 'MemberRoles',
    description: 'The roles of members, the widest first',
    examples: [{ roles: [{ name: 'owner', description: 'Everything', scopes: ['*'], byProject: false }] }],
  },
)

export const ChangeUser = Body(
  {
    name: Type.Optional(PersonName),
    email: Type.Optional(Email),
    current: Type.Optional(Password),
    mutedMails: Type.Optional(MutedMails),
  },
  { minProperties: 1 },
)

export const SessionParams = Type.Object({ id: Type.String({ description: 'ses_…' }) })

export const SignedIn = Type.Object(
  {
    id: Type.String({ description: 'ses_…' }),
    userId: Type.String({ description: 'usr_…' }),
    email: Type.String(),
    name: Type.String(),
    method: Choice(signInMethods),
    userAgent: Type.String({ description: 'What the browser says it is' }),
    createdAt: Timestamp,
    expiresAt: Timestamp,
  },
  {
    $id: 'SignedIn',
    description: 'A sign-in of a member',
    examples: [
      {
        id: 'ses_01jcqk7b3n0grz5p9sc6v2x1',
        userId: 'usr_01jcqk4h2m0grz5p9sc6v2x1',
        email: 'ada@example.com',
        name: 'Ada',
        method: 'passkey',
        userAgent: 'Mozilla/5.0',
        createdAt: '2026-11-14T09:32:00.000Z',
        expiresAt: '2026-12-14T09:32:00.000Z',
      },
    ],
  },
)

const Code = Type.String({ minLength: 1, maxLength: 100, description: 'What stands behind # in the link' })

export const LookAtCode = Body({ code: Code })
export const TakeCode = Body({ code: Code, email: Type.Optional(Email), name: Type.Optional(PersonName) })
export const MintToken = Body({
  account: Type.Optional(Type.String({ minLength: 1, maxLength: 100, description: 'Name of the account, or its id' })),
})
