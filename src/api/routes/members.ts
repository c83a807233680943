// /members and /roles: the people of an account, and what each may do there.
import { Named } from '../../schemas/common.ts'
import { ChangeMember, Member, MemberList, MemberParams, MemberQuery, MemberRoles } from '../../schemas/people.ts'
import { changeMember, findMember, listMembers, listRoles, removeMember } from '../../services/people/index.ts'
import { precondition, sendSingle } from '../http/responses/etag.ts'
import { readPage, sendPage } from '../http/responses/page.ts'
import { NoContent, type RoutePlugin } from './route.ts'

const reads = { scope: 'members:read', accountWide: true } as const
const writes = { scope: 'members:write', accountWide: true } as const

export const memberRoutes: RoutePlugin = async (app, { deps }) => {
  const { db, tokenDirectory } = deps

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

  app.get(
    '/members',
    {
      config: reads,
      schema: {
        operationId: 'listMembers',
        tags: ['Members'],
        summary: 'List members',
        description: 'The people of the account, newest first.',
        querystring: MemberQuery,
        response: { 200: Named(MemberList) },
      },
    },
    async (request, reply) => {
      const page = readPage(request.query, 'members')
      return sendPage(request, reply, page, { members: await listMembers(db, request.actor, page) })
    },
  )

  app.get(
    '/members/:id',
    {
      config: reads,
      schema: {
        operationId: 'getMember',
        tags: ['Members'],
        summary: 'Read a member',
        description: 'Name, address, role and projects of one person in the account.',
        params: MemberParams,
        response: { 200: Named(Member) },
      },
    },
    async (request, reply) => sendSingle(request, reply, await findMember(db, request.actor, request.params.id)),
  )

  app.patch(
    '/members/:id',
    {
      config: { ...writes, faults: ['last_owner', 'owner_required'] },
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
      config: { ...writes, faults: ['last_owner', 'owner_required'] },
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
}
