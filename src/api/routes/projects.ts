// /projects: list, create, read, change, delete, and the build-time variables.

import { Named } from '../../schemas/common.ts'
import {
  ChangeProject,
  CreateProject,
  Project,
  ProjectList,
  ProjectParams,
  ProjectQuery,
  PutVariable,
  Variable,
  VariableList,
  VariableParams,
} from '../../schemas/projects.ts'
import {
  changeProject,
  createProject,
  deleteProject,
  findProject,
  listProjects,
  showProject,
} from '../../services/projects/projects.ts'
import { deleteVariable, listVariables, putVariable } from '../../services/projects/variables.ts'
import { precondition, sendSingle } from '../http/etag.ts'
import { readPage, sendPage } from '../http/page.ts'
import { NoContent, type RoutePlugin } from './route.ts'

export const projectRoutes: RoutePlugin = async (app, { deps, once }) => {
  const { db, urls, vault } = deps
  const { region } = deps.config

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
        response: { 200: ProjectList },
      },
    },
    async (request, reply) => {
      const page = readPage(request.query, 'projects', 1, 'asc')
      const found = await listProjects(db, urls, request.actor, { filter: request.query, page })
      return sendPage(request, reply, page, { projects: found })
    },
  )

  app.post(
    '/projects',
    {
      config: { scope: 'projects:write', faults: ['project_exists'] },
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
        work: (db) => createProject(db, urls, request.actor, { region, input: request.body }),
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
      config: { scope: 'projects:write', faults: ['quota_exceeded'] },
      schema: {
        operationId: 'changeProject',
        tags: ['Projects'],
        summary: 'Change a project',
        description: 'Changes framework, repository or settings; what is left out stays. The name never changes.',
        params: ProjectParams,
        body: ChangeProject,
        response: { 200: Named(Project) },
      },
    },
    async (request, reply) => {
      const change = { key: request.params.project, input: request.body, precondition: precondition(request) }
      return sendSingle(request, reply, await changeProject(db, urls, request.actor, change))
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

  app.get(
    '/projects/:project/env',
    {
      config: { scope: 'projects:read' },
      schema: {
        operationId: 'listVariables',
        tags: ['Projects'],
        summary: 'List build-time variables',
        description: 'Names and targets of the variables; values are sealed at rest and never returned.',
        params: ProjectParams,
        response: { 200: VariableList },
      },
    },
    async (request) => ({ env: await listVariables(db, request.actor, request.params.project) }),
  )

  app.put(
    '/projects/:project/env/:key',
    {
      config: { scope: 'projects:write', faults: ['quota_exceeded'] },
      schema: {
        operationId: 'putVariable',
        tags: ['Projects'],
        summary: 'Set a build-time variable',
        description: 'Makes or replaces the variable; builds that start from now on see it.',
        params: VariableParams,
        body: PutVariable,
        response: { 200: Named(Variable) },
      },
    },
    (request) => {
      const { project: projectKey, key } = request.params
      return putVariable(db, vault, request.actor, { projectKey, key, input: request.body })
    },
  )

  app.delete(
    '/projects/:project/env/:key',
    {
      config: { scope: 'projects:write', withoutEtag: true },
      schema: {
        operationId: 'deleteVariable',
        tags: ['Projects'],
        summary: 'Delete a build-time variable',
        description: 'Builds that start from now on do not see it.',
        params: VariableParams,
        response: { 204: NoContent },
      },
    },
    async (request, reply) => {
      await deleteVariable(db, request.actor, request.params.project, request.params.key)
      return reply.code(204).send(null)
    },
  )
}
