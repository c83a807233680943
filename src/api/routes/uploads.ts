// /uploads: content for deployments without git, addressed by its hash, whole or in pieces.
import { hash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { FastifyRequest } from 'fastify'
import { Fault } from '../../platform/errors.ts'
import { Named } from '../../schemas/common.ts'
import { Upload, UploadArchive, UploadContent, UploadParams, Uploads } from '../../schemas/uploads.ts'
import {
  completeBatch,
  findUpload,
  openReceiver,
  receivePiece,
  reserve,
  storeBatch,
} from '../../services/uploads/index.ts'
import { readContentRange } from '../http/requests/content-range.ts'
import { closedByClient, leaveInFlight } from '../http/requests/transport.ts'
import { compileValidator } from '../http/requests/validation.ts'
import type { RoutePlugin } from './route.ts'

const batchLimitBytes = 8 << 20
const sweepEveryMs = 600_000

export const uploadRoutes: RoutePlugin = async (app, { deps, once }) => {
  const { db, config, artifacts, log } = deps
  const receiver = openReceiver(config, artifacts)
  const sweep = () => receiver.sweep().catch((err) => log.warn({ err }, 'the sweep of unfinished uploads'))
  const timer = setInterval(sweep, sweepEveryMs)
  timer.unref()
  app.addHook('onReady', async () => void sweep())
  app.addHook('onClose', async () => clearInterval(timer))

  // Only here: everywhere else a body is JSON.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/octet-stream', (_request: FastifyRequest, body: IncomingMessage, done) =>
    done(null, body),
  )
  app.addContentTypeParser(
    'application/x-tar',
    { parseAs: 'buffer', bodyLimit: batchLimitBytes },
    (request, raw, done) => {
      // Idempotency-Key compares raw bodies as JSON.
      if (request.headers['idempotency-key'] !== undefined) {
        request.rawBody = Buffer.from(JSON.stringify(hash('sha256', raw as Buffer)))
      }
      done(null, raw)
    },
  )
  const acceptAnyBody: typeof compileValidator = (route) =>
    route.httpPart === 'body' ? () => true : compileValidator(route)

  app.put(
    '/uploads/:sha256',
    {
      config: { scope: 'deployments:write', withoutEtag: true, faults: ['quota_exceeded', 'upload_offset_wrong'] },
      validatorCompiler: acceptAnyBody,
      schema: {
        operationId: 'putUpload',
        tags: ['Deployments'],
        summary: 'Upload content',
        description:
          'Sends the content with this SHA-256, whole or, with `Content-Range`, in pieces that follow each other; `offset` ' +
          'is where the next one begins. A request that is cut off leaves what came, for an hour, at the server that it ' +
          'came to. A request takes 30 s at most: send large files over slow connections in pieces. Deployments that ' +
          'wait for the content go on.',
        consumes: ['application/octet-stream'],
        params: UploadParams,
        body: UploadContent,
        response: { 200: Named(Upload) },
      },
    },
    async (request) => {
      const { actor } = request
      const { sha256 } = request.params
      const piece = { accountId: actor.accountId, sha256, ...readContentRange(request) }
      await reserve(db, actor, { sha256, size: piece.size })
      // The body may arrive slowly.
      leaveInFlight(request)
      const body = (request.body ?? []) as unknown as AsyncIterable<Buffer>
      return receivePiece({ db, receiver, log }, actor, piece, body).catch((error) => {
        throw request.raw.destroyed && !(error instanceof Fault) ? closedByClient() : error
      })
    },
  )

  app.get(
    '/uploads/:sha256',
    {
      config: { scope: 'deployments:read', withoutEtag: true, showsOffset: true },
      schema: {
        operationId: 'getUpload',
        tags: ['Deployments'],
        summary: 'Read an upload',
        description:
          'How much of the content has come; `Upload-Offset` tells it, too, for HEAD. 404 if nothing has, or it is forgotten.',
        params: UploadParams,
        response: { 200: Named(Upload) },
      },
    },
    async (request, reply) => {
      const { sha256 } = request.params
      const offset = await receiver.offsetOf(request.actor.accountId, sha256)
      const upload = await findUpload(db, request.actor, sha256, offset)
      reply.header('upload-offset', String(upload.offset))
      return upload
    },
  )

  app.post(
    '/uploads',
    {
      config: { scope: 'deployments:write', withoutEtag: true, faults: ['quota_exceeded'] },
      bodyLimit: batchLimitBytes,
      validatorCompiler: acceptAnyBody,
      schema: {
        operationId: 'createUploads',
        tags: ['Deployments'],
        summary: 'Upload several files at once',
        description:
          'For small files: a tar archive of up to 8 MiB, in which every file has the SHA-256 of its content as its name. ' +
          'All of them are taken, or none.',
        consumes: ['application/x-tar'],
        body: UploadArchive,
        response: { 200: Named(Uploads) },
      },
    },
    (request, reply) =>
      once(request, reply, {
        prepare: () => storeBatch(db, receiver, request.actor, request.body as unknown as Buffer | undefined),
        status: 200,
        work: async (db, contents) => ({ uploads: await completeBatch(db, receiver, request.actor, contents) }),
      }),
  )
}
