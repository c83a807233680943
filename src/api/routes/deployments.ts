// /deployments: create, read, wait, cancel, promote, delete.
import type { IncomingMessage } from 'node:http'
import type { Static } from '@sinclair/typebox'
import type { FastifyRequest } from 'fastify'
import { Fault, type FieldError } from '../../platform/errors.ts'
import { invalidFields } from '../../platform/fields.ts'
import { Named, waitQuery } from '../../schemas/common.ts'
import {
  ArchiveQuery,
  CreateDeployment,
  Deployment,
  DeploymentList,
  DeploymentParams,
  DeploymentQuery,
  DeploymentStates,
  PromoteDeployment,
} from '../../schemas/deployments.ts'
import { mostSourceFiles, SourceArchive } from '../../schemas/uploads.ts'
import {
  checkDeployment,
  createDeployment,
  deleteDeployment,
  getDeployment,
  planDeployment,
  promoteDeployment,
} from '../../services/deployments/deployments.ts'
import { listDeployments } from '../../services/deployments/list.ts'
import {
  cancelDeployment,
  initialState,
  isFinished,
  terminalStates,
  transitions,
} from '../../services/deployments/states.ts'
import { createUploaded, planArchive, planUploaded } from '../../services/deployments/uploaded.ts'
import { findProject } from '../../services/projects/projects.ts'
import { openReceiver } from '../../services/uploads/receiver.ts'
import { precondition, sendSingle } from '../http/etag.ts'
import { createLargeBodies } from '../http/large-bodies.ts'
import { type LongList, listValidator, longListIn } from '../http/list-validation.ts'
import { readPage, sendPage } from '../http/page.ts'
import { closedByClient, leavePlace } from '../http/transport.ts'
import { createTurns } from '../http/turns.ts'
import { compileValidator } from '../http/validation.ts'
import { NoContent, type RoutePlugin, type SoundBody } from './route.ts'

const archiveTypes = ['application/gzip', 'application/x-gzip', 'application/x-tar']
// A list of files is long; everything else of the body is short.
const listLimitBytes = 8 << 20
const largeAtOnce = 4
// To unpack one takes seconds; those of an account are unpacked one after another.
const archivesWaiting = 8

const sourceFiles: LongList = {
  name: 'files',
  pointer: '#/source/files',
  mostItems: mostSourceFiles,
  holder: (body) => (body as { source?: unknown } | null)?.source,
}

type Archive = { pipe(): unknown } & AsyncIterable<Buffer>

const isArchive = (body: unknown): body is Archive => typeof (body as Archive | null)?.pipe === 'function'

const badQuery = (name: string, code: FieldError['code'], detail: string) =>
  invalidFields([{ in: 'query', pointer: `#/${name}`, code, detail }])

export const deploymentRoutes: RoutePlugin = async (app, { deps, once }) => {
  const { db, urls, repositories, vault, artifacts } = deps
  const { region } = deps.config
  const receiver = openReceiver(deps.config, artifacts)
  const admitLarge = createLargeBodies(largeAtOnce)
  const archives = createTurns('archives', archivesWaiting)

  app.addContentTypeParser(archiveTypes, (request: FastifyRequest, body: IncomingMessage, done) => {
    if (!request.routeOptions.config.archive) return done(new Fault('unsupported_media_type'))
    // By which Idempotency-Key knows the request: nobody has read the archive yet.
    const { 'content-length': length, 'content-type': type, 'content-digest': digest } = request.headers
    request.rawBody = Buffer.from(JSON.stringify({ length, type, digest }))
    done(null, body)
  })

  function plan(
    request: FastifyRequest<{ Body: Static<typeof CreateDeployment>; Querystring: Static<typeof ArchiveQuery> }>,
  ) {
    const { actor, body, query } = request
    if (isArchive(body)) {
      const { project, production = false, prebuilt = false } = query
      if (project === undefined) throw badQuery('project', 'required', 'is required with an archive')
      // Nobody knows how slowly the body comes.
      leavePlace(request)
      const inTurn = <T>(work: () => Promise<T>) =>
        archives(actor.accountId, async () => {
          await app.recheck(request)
          await findProject(db, request.actor, project)
          return work()
        })
      const length = Number(request.headers['content-length'] ?? 0)
      const sent = { project, production, prebuilt, length, body }
      return planArchive(db, { urls, region, artifacts, receiver, inTurn }, actor, sent).catch((error) => {
        // One that has sent everything may still be there.
        const isCutOff = request.raw.destroyed && !request.raw.readableEnded
        throw isCutOff && !(error instanceof Fault) ? closedByClient() : error
      })
    }
    const [name] = Object.keys(query)
    if (name) throw badQuery(name, 'not_allowed', 'is taken from the address only for an archive')
    const { source } = body
    if (source) return planUploaded(db, region, actor, { ...body, source })
    return planDeployment(db, { repositories, vault, region }, actor, body)
  }

  app.post(
    '/deployments',
    {
      config: {
        scope: 'deployments:write',
        faults: ['not_found', 'ref_not_found', 'project_without_repository'],
        archive: { types: archiveTypes, schema: SourceArchive },
        meaning: ({ actor }, body: SoundBody<typeof CreateDeployment>) =>
          checkDeployment(db, { repositories, vault, region }, actor, body),
      },
      bodyLimit: listLimitBytes,
      preParsing: async (request, reply) => {
        // An archive goes to the disk as it comes.
        if (!archiveTypes.includes(request.headers['content-type'] ?? '')) admitLarge(request, reply)
      },
      validatorCompiler: (route) => {
        const validate = compileValidator(route)
        const validateList = listValidator(route.schema as object, sourceFiles)
        const check = (data: unknown) => {
          const files = longListIn(data, sourceFiles)
          return files ? validateList(data, files) : validate(data)
        }
        return Object.assign((data: unknown) => isArchive(data) || check(data), validate)
      },
      schema: {
        operationId: 'createDeployment',
        tags: ['Deployments'],
        summary: 'Create a deployment',
        description:
          'Builds a ref of the project. The ref is resolved first, so `commit` is the commit that is built; if the ' +
          'repository does not answer within 2 s, `commit` stays empty until the worker has resolved it. ' +
          'Without git: `source` lists files. `uploads.missing` of the answer has what is not known yet; once that was ' +
          'sent to `PUT /uploads/{sha256}` or `POST /uploads`, the build begins by itself. Or the body is a tar archive of ' +
          'all files, and the address names the project.',
        consumes: ['application/json', ...archiveTypes],
        querystring: ArchiveQuery,
        body: CreateDeployment,
        response: { 201: Named(Deployment) },
      },
    },
    (request, reply) =>
      once(request, reply, {
        prepare: async () => plan(request),
        status: 201,
        work: (db, plan) =>
          'files' in plan
            ? createUploaded(db, urls, request.actor, plan)
            : createDeployment(db, urls, request.actor, plan),
        location: (deployment) => `/deployments/${deployment.id}`,
      }),
  )

  app.get(
    '/deployments',
    {
      config: { scope: 'deployments:read' },
      schema: {
        operationId: 'listDeployments',
        tags: ['Deployments'],
        summary: 'List deployments',
        description:
          'Deployments of all projects or of one, newest first. After 30 days, or as long as the operator has set, those ' +
          'that neither serve production nor are among the newest of their project are deleted by the platform, with the ' +
          'event `deployment.deleted`.',
        querystring: DeploymentQuery,
        response: { 200: Named(DeploymentList) },
      },
    },
    async (request, reply) => {
      const page = readPage(request.query, 'deployments')
      const found = await listDeployments(db, urls, request.actor, { filter: request.query, page })
      return sendPage(request, reply, page, { deployments: found })
    },
  )

  app.get(
    '/deployments/states',
    {
      config: { scope: 'deployments:read' },
      schema: {
        operationId: 'listDeploymentStates',
        tags: ['Deployments'],
        summary: 'Read the state machine',
        description: 'Every state of a deployment, and when it changes into which.',
        response: { 200: Named(DeploymentStates) },
      },
    },
    async (request, reply) =>
      sendSingle(request, reply, { initial: initialState, transitions, terminal: terminalStates }),
  )

  app.get(
    '/deployments/:id',
    {
      config: { scope: 'deployments:read', faults: ['quota_exceeded'] },
      schema: {
        operationId: 'getDeployment',
        tags: ['Deployments'],
        summary: 'Read a deployment',
        description: 'With `wait`, the answer comes when the deployment has left BUILDING or the seconds are over.',
        params: DeploymentParams,
        querystring: waitQuery,
        response: { 200: Named(Deployment) },
      },
    },
    async (request, reply) => {
      const { id } = request.params
      const view = await app.waits.until(request, {
        subject: id,
        waitSeconds: request.query.wait,
        read: () => getDeployment(db, urls, request.actor, id),
        settled: (view) => isFinished(view.state),
      })
      return sendSingle(request, reply, view)
    },
  )

  app.post(
    '/deployments/:id/cancel',
    {
      config: { scope: 'deployments:write', faults: ['deployment_finished'] },
      schema: {
        operationId: 'cancelDeployment',
        tags: ['Deployments'],
        summary: 'Cancel a deployment',
        description: 'Ends a build that is under way; its processes are gone within 5 s.',
        params: DeploymentParams,
        response: { 202: Named(Deployment) },
      },
    },
    (request, reply) =>
      once(request, reply, {
        status: 202,
        work: (db) => cancelDeployment(db, urls, request.actor, request.params.id),
      }),
  )

  app.post(
    '/deployments/:id/promote',
    {
      config: { scope: 'deployments:write', faults: ['deployment_not_ready'] },
      schema: {
        operationId: 'promoteDeployment',
        tags: ['Deployments'],
        summary: 'Promote a deployment',
        description:
          'Points production at a READY deployment at once and without a build: roll back, or forward again. With `pin` ' +
          'production stays there until `DELETE /projects/{project}/pin`, or another one is promoted without it.',
        params: DeploymentParams,
        body: PromoteDeployment,
        response: { 202: Named(Deployment) },
      },
    },
    (request, reply) =>
      once(request, reply, {
        status: 202,
        work: (db) => promoteDeployment(db, urls, request.actor, { id: request.params.id, pin: request.body?.pin }),
      }),
  )

  app.delete(
    '/deployments/:id',
    {
      config: { scope: 'deployments:write', faults: ['deployment_in_production', 'deployment_building'] },
      schema: {
        operationId: 'deleteDeployment',
        tags: ['Deployments'],
        summary: 'Delete a deployment',
        description: 'Its address stops being served. Refused while it serves production or is being built.',
        params: DeploymentParams,
        response: { 204: NoContent },
      },
    },
    async (request, reply) => {
      const { id } = request.params
      await deleteDeployment(db, urls, request.actor, { id, precondition: precondition(request) })
      return reply.code(204).send(null)
    },
  )
}
