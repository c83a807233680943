// /members/invitations: list, create, read, delete.
import { Named } from '../../schemas/common.ts'
import {
  CreateInvitation,
  Invitation,
  InvitationList,
  InvitationParams,
  InvitationWithSecret,
  MemberQuery,
} from '../../schemas/people.ts'
import {
  createInvitation,
  deleteInvitation,
  findInvitation,
  listInvitations,
  projectsOf,
} from '../../services/people/index.ts'
import { precondition, sendSingle } from '../http/responses/etag.ts'
import { readPage, sendPage } from '../http/responses/page.ts'
import { NoContent, type RoutePlugin, type SoundBody } from './route.ts'

const reads = { scope: 'members:read', accountWide: true } as const

export const invitationRoutes: RoutePlugin = async (app, { deps, once }) => {
  const { db, config } = deps

  app.get(
    '/members/invitations',
    {
      config: reads,
      schema: {
        operationId: 'listInvitations',
        tags: ['Members'],
        summary: 'List invitations',
        description: 'The invitations that can still be accepted, newest first, without their links.',
        querystring: MemberQuery,
        response: { 200: Named(InvitationList) },
      },
    },
    async (request, reply) => {
      const page = readPage(request.query, 'invitations')
      return sendPage(request, reply, page, { invitations: await listInvitations(db, request.actor, page) })
    },
  )

  app.get(
    '/members/invitations/:id',
    {
      config: reads,
      schema: {
        operationId: 'getInvitation',
        tags: ['Members'],
        summary: 'Read an invitation',
        description: 'Who is invited, as what and until when, without the link.',
        params: InvitationParams,
        response: { 200: Named(Invitation) },
      },
    },
    async (request, reply) => sendSingle(request, reply, await findInvitation(db, request.actor, request.params.id)),
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
