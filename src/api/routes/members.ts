// /members, /members/invitations and /roles: the people of an account, and what each may do there.

import type { TSchema } from '@sinclair/typebox'
import type { Db } from '../../platform/database/database.ts'
import type { PageOf, PageRequest } from '../../platform/database/page.ts'
import { Named } from '../../schemas/common.ts'
import {
  ChangeMember,
  CreateInvitation,
  Invitation,
  InvitationList,
  InvitationParams,
  InvitationWithSecret,
  Member,
  MemberList,
  MemberParams,
  MemberQuery,
  MemberRoles,
} from '../../schemas/people.ts'
import type { Actor } from '../../services/identity/index.ts'
import {
  changeMember,
  createInvitation,
  deleteInvitation,
  findInvitation,
  findMember,
  listInvitations,
  listMembers,
  listRoles,
  projectsOf,
  removeMember,
} from '../../services/people/index.ts'
import { precondition, sendSingle } from '../http/answers/etag.ts'
import { readPage, sendPage } from '../http/answers/page.ts'
import { NoContent, type RoutePlugin, type SoundBody } from './route.ts'

type Words = [operationId: string, summary: string, description: string]

type Readable<T> = {
  path: string
  /** Its name in the answer, and in cursors. */
  list: string
  schemas: { page: TSchema; one: TSchema; params: typeof MemberParams }
  listed: Words
  read: Words
  page(db: Db, actor: Actor, page: PageRequest): Promise<PageOf<T>>
  find(db: Db, actor: Actor, id: string): Promise<T>
}

export const memberRoutes: RoutePlugin = async (app, { deps, once }) => {
  const { db, config, tokenDirectory } = deps

  /** The list of one kind, and one of it. */
  function reading<T>({ path, list, schemas, listed, read, page: pageOf, find }: Readable<T>): void {
    const described = ([operationId, summary, description]: Words) => ({ operationId, summary, description })
    const config = { scope: 'members:read', accountWide: true } as const
    const tags = ['Members']
    app.get(
      path,
      {
        config,
        schema: { ...described(listed), tags, querystring: MemberQuery, response: { 200: Named(schemas.page) } },
      },
      async (request, reply) => {
        const page = readPage(request.query, list)
        return sendPage(request, reply, page, { [list]: await pageOf(db, request.actor, page) })
      },
    )
    app.get(
      `${path}/:id`,
      { config, schema: { ...described(read), tags, params: schemas.params, response: { 200: Named(schemas.one) } } },
      async (request, reply) => sendSingle(request, reply, await find(db, request.actor, request.params.id)),
    )
  }

  app.get(
    '/roles',
    {
      config: { scope: null },
      schema: {
        operationId: 'listRoles',
        tags: ['Members'],
        summary: 'List roles',
        description: 'What the members of an account may be, the widest role first, and which scopes each stands for.',
        response: { 200: Named(MemberRoles) },
      },
    },
    async (request, reply) => sendSingle(request, reply, { roles: listRoles() }),
  )

  reading({
    path: '/members',
    list: 'members',
    schemas: { page: MemberList, one: Member, params: MemberParams },
    listed: ['listMembers', 'List members', 'The people of the account, newest first.'],
    read: ['getMember', 'Read a member', 'Name, address, role and projects of one person in the account.'],
    page: listMembers,
    find: findMember,
  })

  reading({
    path: '/members/invitations',
    list: 'invitations',
    schemas: { page: InvitationList, one: Invitation, params: InvitationParams },
    listed: [
      'listInvitations',
      'List invitations',
      'The invitations that can still be accepted, newest first, without their links.',
    ],
    read: ['getInvitation', 'Read an invitation', 'Who is invited, as what and until when, without the link.'],
    page: listInvitations,
    find: findInvitation,
  })

  app.patch(
    '/members/:id',
    {
      config: { scope: 'members:write', accountWide: true, faults: ['last_owner', 'owner_required'] },
      schema: {
        operationId: 'changeMember',
        tags: ['Members'],
        summary: 'Change a member',
        description:
          'Gives the person another role or other projects. What their tokens have beyond that, these lose at once. The ' +
          'calling token needs every scope of both roles; only an owner changes owners or makes one, and the last owner ' +
          'stays one. A role that cannot be narrowed takes the projects away.',
        params: MemberParams,
        body: ChangeMember,
        response: { 200: Named(Member) },
      },
    },
    async (request, reply) => {
      const change = { id: request.params.id, input: request.body, precondition: precondition(request) }
      const member = await changeMember(db, request.actor, change)
      tokenDirectory.forgetAccount(request.actor.accountId)
      return sendSingle(request, reply, member)
    },
  )

  app.delete(
    '/members/:id',
    {
      config: { scope: 'members:write', accountWide: true, faults: ['last_owner', 'owner_required'] },
      schema: {
        operationId: 'removeMember',
        tags: ['Members'],
        summary: 'Remove a member',
        description:
          'Takes the person out of the account, and revokes every token that they made. Takes effect at once on this ' +
          'server and within a second on every other. Only an owner removes an owner, and the last owner cannot leave.',
        params: MemberParams,
        response: { 204: NoContent },
      },
    },
    async (request, reply) => {
      await removeMember(db, request.actor, { id: request.params.id, precondition: precondition(request) })
      tokenDirectory.forgetAccount(request.actor.accountId)
      return reply.code(204).send(null)
    },
  )

  app.post(
    '/members/invitations',
    {
      config: {
        scope: 'members:write',
        accountWide: true,
        faults: ['member_exists', 'owner_required'],
        meaning: ({ actor }, { role, projects = null }: SoundBody<typeof CreateInvitation>) =>
          role === undefined ? null : projectsOf(db, actor, role, projects),
      },
      schema: {
        operationId: 'createInvitation',
        tags: ['Members'],
        summary: 'Invite a person',
        description:
          'The answer holds the link to hand over; it makes its holder a member, once, within seven days, and is never ' +
          'shown again. An earlier invitation of the same address is taken back. The calling token needs every scope of ' +
          'the role; only an owner invites owners.',
        body: CreateInvitation,
        response: { 201: Named(InvitationWithSecret) },
      },
    },
    (request, reply) =>
      once(request, reply, {
        status: 201,
        work: (db) => createInvitation(db, request.actor, config.baseUrl, request.body),
        location: ({ id }) => `/members/invitations/${id}`,
        shown: ({ url: _url, secret: _secret, ...invitation }) => invitation,
      }),
  )

  app.delete(
    '/members/invitations/:id',
    {
      config: { scope: 'members:write', accountWide: true, faults: ['owner_required'] },
      schema: {
        operationId: 'deleteInvitation',
        tags: ['Members'],
        summary: 'Take an invitation back',
        description: 'Its link is not valid any more.',
        params: InvitationParams,
        response: { 204: NoContent },
      },
    },
    async (request, reply) => {
      await deleteInvitation(db, request.actor, { id: request.params.id, precondition: precondition(request) })
      return reply.code(204).send(null)
    },
  )
}
