// /deployments: create from a commit, a list of files or an archive.
import type { Static } from '@sinclair/typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Fault, type FieldError } from '../../platform/errors.ts'
import { invalidFields } from '../../platform/fields.ts'
import { Named } from '../../schemas/common.ts'
import { ArchiveQuery, CreateDeployment, Deployment, OldArchiveQuery } from '../../schemas/deployments.ts'
import { maxSourceFiles, SourceArchive } from '../../schemas/uploads.ts'
import {
  checkDeployment,
  createPlanned,
  type DeploymentPlan,
  planDeployment,
  planUploaded,
  type UploadPlan,
} from '../../services/deployments/index.ts'
import { acceptArchives, announcesArchive, isArchive } from '../http/archive-bodies.ts'
import { type LongList, listValidator, longListIn } from '../http/requests/list-validation.ts'
import { compileValidator } from '../http/requests/validation.ts'
import { createLargeBodies } from '../http/shares/large-bodies.ts'
import type { RoutePlugin, SoundBody } from './route.ts'

// Everything else in a body is short.
const listLimitBytes = 8 << 20
const maxLargeBodies = 4

const sourceFiles: LongList = {
  name: 'files',
  pointer: '#/source/files',
  maxItems: maxSourceFiles,
  holder: (body) => (body as { source?: unknown } | null)?.source,
}

const badQuery = (name: string, code: FieldError['code'], detail: string) =>
  invalidFields([{ in: 'query', pointer: `#/${name}`, code, detail }])

export const deploymentCreationRoutes: RoutePlugin = async (app, { deps, once, inUploadTurn }) => {
  const { db, urls, repositories, vault } = deps
  const { region } = deps.config
  const admitLarge = createLargeBodies(maxLargeBodies)
  const planArchiveBody = acceptArchives(app, deps)

  function plan(
    request: FastifyRequest<{ Body: Static<typeof CreateDeployment>; Querystring: Static<typeof OldArchiveQuery> }>,
  ) {
    const { actor, body, query } = request
    if (isArchive(body)) {
      const { project, ...more } = query
      if (project === undefined) throw badQuery('project', 'required', 'is required with an archive')
      return planArchiveBody(request, { project, ...more })
    }
    const [name] = Object.keys(query)
    if (name) throw badQuery(name, 'not_allowed', 'is only allowed in the URL when sending an archive')
    const { source } = body
    if (source) return planUploaded(db, region, actor, { ...body, source })
    return planDeployment(db, { repositories, vault, region }, actor, body)
  }

  const create = (request: FastifyRequest, reply: FastifyReply, prepare: () => Promise<DeploymentPlan | UploadPlan>) =>
    once(request, reply, {
      prepare,
      inTurn: (plan, work) => ('files' in plan ? inUploadTurn(request.actor.accountId, work) : work()),
      status: 201,
      work: (db, plan) => createPlanned(db, urls, request.actor, plan),
      location: (deployment) => `/deployments/${deployment.id}`,
    })

  app.post(
    '/deployments',
    {
      config: {
        scope: 'deployments:write',
        faults: ['not_found', 'ref_not_found', 'project_without_repository'],
        // 2026-11-19.
        deprecated: { since: '@1795046400', isUsed: announcesArchive },
        meaning: ({ actor }, body: SoundBody<typeof CreateDeployment>) =>
          checkDeployment(db, { repositories, vault, region }, actor, body),
      },
      bodyLimit: listLimitBytes,
      preParsing: async (request, reply) => {
        // Archives aren't held in memory.
        if (!announcesArchive(request)) admitLarge(request, reply)
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
          'repository does not answer within 2 s, `commit` stays empty until the worker has resolved it, and `warnings` says ' +
          'so: the build retries for five minutes. Without `ref`, the production branch is built; `HEAD` is the default ' +
          'branch of the repository. ' +
          'Without git: `source` lists files. `uploads.missing` of the answer has what is not known yet; once that was ' +
          'sent to `PUT /uploads/{sha256}` or `POST /uploads`, the build begins by itself. To send all files in one ' +
          'request, use `POST /deployments/archive`. Deprecated: the same archive as the body of this operation, with the ' +
          'same parameters in the address.',
        querystring: OldArchiveQuery,
        body: CreateDeployment,
        response: { 201: Named(Deployment) },
      },
    },
    (request, reply) => create(request, reply, async () => plan(request)),
  )

  app.post(
    '/deployments/archive',
    {
      config: { scope: 'deployments:write', faults: ['not_found'] },
      preParsing: async (request) => {
        if (!announcesArchive(request)) throw new Fault('unsupported_media_type')
      },
      validatorCompiler: (route) => (route.httpPart === 'body' ? () => true : compileValidator(route)),
      schema: {
        operationId: 'createDeploymentFromArchive',
        tags: ['Deployments'],
        summary: 'Create a deployment from an archive',
        description:
          'Deploys the files of a tar archive, without git: the body is the archive, compressed by gzip or not ' +
          '(`application/gzip` and `application/x-tar` are taken, too). For many or large files, list them with `POST /deployments`, which asks ' +
          'only for what it does not know. An `Idempotency-Key` compares archives by length, media type and the header ' +
          '`Content-Digest`, before they are read.',
        consumes: ['application/octet-stream'],
        querystring: ArchiveQuery,
        body: SourceArchive,
        response: { 201: Named(Deployment) },
      },
    },
    (request, reply) => create(request, reply, () => planArchiveBody(request, request.query)),
  )
}
