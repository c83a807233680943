// /deployments: create from a commit or a list of files, or from an archive of all files.
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
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
  planArchive,
  planDeployment,
  planUploaded,
  type UploadPlan,
} from '../../services/deployments/index.ts'
import { findProject } from '../../services/projects/index.ts'
import { openReceiver } from '../../services/uploads/index.ts'
import { type LongList, listValidator, longListIn } from '../http/intake/list-validation.ts'
import { closedByClient, isGone, leavePlace } from '../http/intake/transport.ts'
import { compileValidator } from '../http/intake/validation.ts'
import { createLargeBodies } from '../http/shares/large-bodies.ts'
import { createTurns } from '../http/shares/turns.ts'
import type { RoutePlugin, SoundBody } from './route.ts'

// Whether it is compressed is seen in its first bytes. The first type is the documented one: generated clients know how to
// send it.
const archiveTypes = ['application/octet-stream', 'application/gzip', 'application/x-gzip', 'application/x-tar']
// A list of files is long; everything else of the body is short.
const listLimitBytes = 8 << 20
const largeAtOnce = 4
// To unpack one takes seconds; those of an account are unpacked one after another.
const archivesWaiting = 8

const sourceFiles: LongList = {
  name: 'files',
  pointer: '#/source/files',
  maxItems: maxSourceFiles,
  holder: (body) => (body as { source?: unknown } | null)?.source,
}

type Archive = { pipe: unknown } & AsyncIterable<Buffer>

const isArchive = (body: unknown): body is Archive => typeof (body as Archive | null)?.pipe === 'function'
/** Media types have no upper or lower case, and may have parameters. */
const comesAsArchive = ({ headers }: FastifyRequest) => {
  const [mediaType = ''] = (headers['content-type'] ?? '').split(';', 1)
  return archiveTypes.includes(mediaType.trim().toLowerCase())
}

const badQuery = (name: string, code: FieldError['code'], detail: string) =>
  invalidFields([{ in: 'query', pointer: `#/${name}`, code, detail }])

export const deploymentCreationRoutes: RoutePlugin = async (app, { deps, once, inUploadTurn }) => {
  const { db, urls, repositories, vault, artifacts } = deps
  const { region } = deps.config
  const receiver = openReceiver(deps.config, artifacts)
  const admitLarge = createLargeBodies(largeAtOnce)
  const archives = createTurns('archives', archivesWaiting)

  app.addContentTypeParser(archiveTypes, (request: FastifyRequest, body: IncomingMessage, done) => {
    // By which Idempotency-Key knows the request: nobody has read the archive yet.
    const { 'content-length': length, 'content-type': type, 'content-digest': digest } = request.headers
    request.rawBody = Buffer.from(JSON.stringify({ length, type, digest }))
    done(null, body)
  })

  function planSent(request: FastifyRequest, body: Archive, query: Static<typeof ArchiveQuery>): Promise<UploadPlan> {
    const { actor } = request
    const { project, production = false, prebuilt = false } = query
    // Nobody knows how slowly the body comes.
    leavePlace(request)
    const inTurn = <T>(work: () => Promise<T>) =>
      archives(actor.accountId, async () => {
        if (isGone(request)) throw closedByClient()
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

  function plan(
    request: FastifyRequest<{ Body: Static<typeof CreateDeployment>; Querystring: Static<typeof OldArchiveQuery> }>,
  ) {
    const { actor, body, query } = request
    if (isArchive(body)) {
      const { project, ...more } = query
      if (project === undefined) throw badQuery('project', 'required', 'is required with an archive')
      return planSent(request, body, { project, ...more })
    }
    const [name] = Object.keys(query)
    if (name) throw badQuery(name, 'not_allowed', 'is only allowed in the URL when sending an archive')
    const { source } = body
    if (source) return planUploaded(db, region, actor, { ...body, source })
    return planDeployment(db, { repositories, vault, region }, actor, body)
  }

  const createdAs = (
    request: FastifyRequest,
    reply: FastifyReply,
    prepare: () => Promise<DeploymentPlan | UploadPlan>,
  ) =>
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
        deprecated: { since: '@1795046400', isUsed: comesAsArchive },
        meaning: ({ actor }, body: SoundBody<typeof CreateDeployment>) =>
          checkDeployment(db, { repositories, vault, region }, actor, body),
      },
      bodyLimit: listLimitBytes,
      preParsing: async (request, reply) => {
        // An archive goes to the disk as it comes.
        if (!comesAsArchive(request)) admitLarge(request, reply)
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
    (request, reply) => createdAs(request, reply, async () => plan(request)),
  )

  app.post(
    '/deployments/archive',
    {
      config: { scope: 'deployments:write', faults: ['not_found'] },
      // What is no archive is refused before it is read.
      preParsing: async (request) => {
        if (!comesAsArchive(request)) throw new Fault('unsupported_media_type')
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
    (request, reply) => {
      const body: unknown = request.body
      return createdAs(request, reply, async () =>
        planSent(request, isArchive(body) ? body : Readable.from([]), request.query),
      )
    },
  )
}
