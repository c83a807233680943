// /projects: list, create, read, change, delete.
import { createPasswordHasher } from '../../platform/secrets/password-hash.ts'
import { Named } from '../../schemas/common.ts'
import {
  ChangeProject,
  CreateProject,
  Project,
  ProjectList,
  ProjectParams,
  ProjectQuery,
} from '../../schemas/projects.ts'
import {
  changeProject,
  checkSettings,
  createProject,
  deleteProject,
  findProject,
  hashPreviewPassword,
  listProjects,
  showProject,
} from '../../services/projects/index.ts'
import { precondition, sendSingle } from '../http/responses/etag.ts'
import { readPage, sendPage } from '../http/responses/page.ts'
import { NoContent, type RoutePlugin, type SoundBody } from './route.ts'

export const projectRoutes: RoutePlugin = async (app, { deps, once }) => {
  const { db, urls } = deps
  const { region } = deps.config
  const hasher = deps.passwordHasher ?? createPasswordHasher()
  const meaning = (_request: unknown, body: SoundBody<typeof ChangeProject>) => checkSettings(body, deps.config)

  app.get(
    '/projects',
    {
      config: { scope: 'projects:read' },
      schema: {
        operationId: 'listProjects',
        tags: ['Projects'],
        summary: 'List projects',
        description: 'The projects of the account with their settings and linked repository, by name.',
        querystring: ProjectQuery,
        response: { 200: Named(ProjectList) },
      },
    },
    async (request, reply) => {
      const page = readPage(request.query, 'projects', 1, 'asc')
      const projects = await listProjects(db, urls, request.actor, { filter: request.query, page })
      return sendPage(request, reply, page, { projects })
    },
  )

  app.post(
    '/projects',
    {
      config: { scope: 'projects:write', faults: ['project_exists'], meaning },
      schema: {
        operationId: 'createProject',
        tags: ['Projects'],
        summary: 'Create a project',
        description: 'Links a repository. Its production address is given now and never changes.',
        body: CreateProject,
        response: { 201: Named(Project) },
      },
    },
    (request, reply) =>
      once(request, reply, {
        status: 201,
        prepare: () => hashPreviewPassword(hasher, request.body.settings),
        work: (db, passwordHash) =>
          createProject(db, urls, request.actor, { region, input: request.body, passwordHash, rules: deps.config }),
        location: (project) => `/projects/${project.name}`,
      }),
  )

  app.get(
    '/projects/:project',
    {
      config: { scope: 'projects:read' },
      schema: {
        operationId: 'getProject',
        tags: ['Projects'],
        summary: 'Read a project',
        description: 'Settings, linked repository and production address, by name or id.',
        params: ProjectParams,
        response: { 200: Named(Project) },
      },
    },
    async (request, reply) => {
      const row = await findProject(db, request.actor, request.params.project)
      return sendSingle(request, reply, await showProject(db, urls, row))
    },
  )

  app.patch(
    '/projects/:project',
    {
      config: { scope: 'projects:write', faults: ['quota_exceeded', 'project_exists'], meaning },
      schema: {
        operationId: 'changeProject',
        tags: ['Projects'],
        summary: 'Change a project',
        description:
          'Changes name, framework, repository or settings; what is left out stays. A project that was renamed is still ' +
          'found by its former names, which no other project of the account gets, and its production address stays. New ' +
          'deployments have the new name in their addresses. `changes` of the response says what counts at once, and ' +
          'what only from the next deployment on.',
        params: ProjectParams,
        body: ChangeProject,
        response: { 200: Named(Project) },
      },
    },
    async (request, reply) => {
      const passwordHash = await hashPreviewPassword(hasher, request.body.settings)
      const change = {
        key: request.params.project,
        input: request.body,
        passwordHash,
        rules: deps.config,
        precondition: precondition(request),
      }
      const { view, changes } = await changeProject(db, urls, request.actor, change)
      return sendSingle(request, reply, { ...view, changes }, view)
    },
  )

  app.delete(
    '/projects/:project',
    {
      config: { scope: 'projects:write', faults: ['project_has_domains'] },
      schema: {
        operationId: 'deleteProject',
        tags: ['Projects'],
        summary: 'Delete a project',
        description: 'Takes its deployments along. Refused while domains are attached.',
        params: ProjectParams,
        response: { 204: NoContent },
      },
    },
    async (request, reply) => {
      const { project: key } = request.params
      await deleteProject(db, urls, request.actor, { key, precondition: precondition(request) })
      return reply.code(204).send(null)
    },
  )
}
