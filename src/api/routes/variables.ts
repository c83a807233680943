// /projects/{project}/env: the variables of a project.
import { Named } from '../../schemas/common.ts'
import {
  ProjectParams,
  PutVariable,
  Variable,
  VariableList,
  VariableParams,
  VariableTarget,
  VariableValues,
} from '../../schemas/projects.ts'
import { deleteVariable, findVariable, listVariables, putVariable } from '../../services/projects/index.ts'
import { precondition, sendSingle } from '../http/responses/etag.ts'
import { wholeEnd } from '../http/responses/page.ts'
import { NoContent, type RoutePlugin } from './route.ts'

export const variableRoutes: RoutePlugin = async (app, { deps }) => {
  const { db, vault } = deps

  app.get(
    '/projects/:project/env',
    {
      config: { scope: 'projects:read', secretAnswer: true },
      schema: {
        operationId: 'listVariables',
        tags: ['Projects'],
        summary: 'List build-time variables',
        description:
          'Every variable for each target that has a value. Values are sealed at rest, and returned only where they are ' +
          '`readable`.',
        params: ProjectParams,
        response: { 200: Named(VariableList) },
      },
    },
    async (request) => ({ env: await listVariables(db, vault, request.actor, request.params.project), ...wholeEnd }),
  )

  app.get(
    '/projects/:project/env/:key',
    {
      config: { scope: 'projects:read', secretAnswer: true },
      schema: {
        operationId: 'getVariable',
        tags: ['Projects'],
        summary: 'Read a build-time variable',
        description:
          'Its values for each target, returned only where they are `readable`; the ETag is that of all of them.',
        params: VariableParams,
        response: { 200: Named(VariableValues) },
      },
    },
    async (request, reply) => {
      const { project: projectKey, key } = request.params
      const { variable, version } = await findVariable(db, vault, request.actor, { projectKey, key })
      return sendSingle(request, reply, variable, version)
    },
  )

  app.put(
    '/projects/:project/env/:key',
    {
      config: { scope: 'projects:write', faults: ['quota_exceeded'] },
      schema: {
        operationId: 'putVariable',
        tags: ['Projects'],
        summary: 'Set a build-time variable',
        description:
          'Makes or replaces the value for one target; those for the others stay. Builds that start from now on see it.',
        params: VariableParams,
        body: PutVariable,
        response: { 200: Named(Variable) },
      },
    },
    (request) => {
      const { project: projectKey, key } = request.params
      const change = { projectKey, key, input: request.body, precondition: precondition(request) }
      return putVariable(db, vault, request.actor, change)
    },
  )

  app.delete(
    '/projects/:project/env/:key',
    {
      config: { scope: 'projects:write' },
      schema: {
        operationId: 'deleteVariable',
        tags: ['Projects'],
        summary: 'Delete a build-time variable',
        description: 'Deletes all of its values, or that for one target. Builds that start from now on do not see it.',
        params: VariableParams,
        querystring: VariableTarget,
        response: { 204: NoContent },
      },
    },
    async (request, reply) => {
      const { project: projectKey, key } = request.params
      const change = { projectKey, key, target: request.query.target, precondition: precondition(request) }
      await deleteVariable(db, request.actor, change)
      return reply.code(204).send(null)
    },
  )
}
