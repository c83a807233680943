// Archives as bodies: streamed to disk as they arrive, then unpacked one at a time per account.
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import type { Static } from '@sinclair/typebox'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Fault } from '../../platform/errors.ts'
import type { ArchiveQuery } from '../../schemas/deployments.ts'
import { planArchive, type UploadPlan } from '../../services/deployments/index.ts'
import { findProject } from '../../services/projects/index.ts'
import { openReceiver } from '../../services/uploads/index.ts'
import type { Deps } from './deps.ts'
import { closedByClient, isGone, leaveInFlight } from './requests/transport.ts'
import { createTurns } from './shares/turns.ts'

// The first bytes show whether an archive is compressed. The first type is the documented one, because generated clients
// know how to send it.
const archiveTypes = ['application/octet-stream', 'application/gzip', 'application/x-gzip', 'application/x-tar']
// Unpacking takes seconds.
const maxWaiting = 8

type Archive = { pipe: unknown } & AsyncIterable<Buffer>

export type PlanArchiveBody = (request: FastifyRequest, query: Static<typeof ArchiveQuery>) => Promise<UploadPlan>

/** Media types are case-insensitive and may have parameters. */
export function announcesArchive({ headers }: FastifyRequest): boolean {
  const [mediaType = ''] = (headers['content-type'] ?? '').split(';', 1)
  return archiveTypes.includes(mediaType.trim().toLowerCase())
}

export function isArchive(body: unknown): body is Archive {
  return typeof (body as Archive | null)?.pipe === 'function'
}

/** Lets the routes of a plugin take archives; returns what plans a deployment of one. */
export function acceptArchives(app: FastifyInstance, deps: Deps): PlanArchiveBody {
  const { db, urls, artifacts, config } = deps
  const receiver = openReceiver(config, artifacts)
  const turns = createTurns('archives', maxWaiting)

  app.addContentTypeParser(archiveTypes, (request: FastifyRequest, body: IncomingMessage, done) => {
    // Idempotency-Key compares these headers, because the archive hasn't been read yet.
    const { 'content-length': length, 'content-type': type, 'content-digest': digest } = request.headers
    request.rawBody = Buffer.from(JSON.stringify({ length, type, digest }))
    done(null, body)
  })

  return (request, { project, production = false, prebuilt = false }) => {
    const { actor } = request
    const body: unknown = request.body
    // The body may arrive slowly.
    leaveInFlight(request)
    const inTurn = <T>(work: () => Promise<T>) =>
      turns(actor.accountId, async () => {
        if (isGone(request)) throw closedByClient()
        await app.recheck(request)
        await findProject(db, request.actor, project)
        return work()
      })
    const length = Number(request.headers['content-length'] ?? 0)
    const archive = { project, production, prebuilt, length, body: isArchive(body) ? body : Readable.from([]) }
    const options = { urls, region: config.region, artifacts, receiver, inTurn }
    return planArchive(db, options, actor, archive).catch((error) => {
      // A client that has sent everything may still be waiting for the response.
      const isCutOff = request.raw.destroyed && !request.raw.readableEnded
      throw isCutOff && !(error instanceof Fault) ? closedByClient() : error
    })
  }
}
