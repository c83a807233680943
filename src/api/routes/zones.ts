// /dns/{domain}/zone: export and import of the zone file, and what the nameservers serve.

import type { IncomingMessage } from 'node:http'
import type { FastifyRequest } from 'fastify'
import { probeSoa } from '../../dns/soa-probe.ts'
import { Fault, invalidField } from '../../platform/errors.ts'
import { Named } from '../../schemas/common.ts'
import { ZoneParams } from '../../schemas/dns-records.ts'
import { ZoneFile, ZoneImport, ZoneImportQuery, ZoneStatus } from '../../schemas/zones.ts'
import {
  explainLag,
  findZone,
  lagsOf,
  secondariesOf,
  type ZoneUpload,
  zoneFileLimitBytes,
} from '../../services/dns/index.ts'
import { nameserversOf } from '../../services/domains/index.ts'
import { untilGone } from '../http/live/gone.ts'
import { closedByClient } from '../http/requests/transport.ts'
import { compileValidator } from '../http/requests/validation.ts'
import { sendOctets } from '../http/responses/etag.ts'
import type { RoutePlugin } from './route.ts'

const zoneFileTypes = ['text/dns', 'text/plain']
const uploads = new WeakMap<FastifyRequest, ZoneUpload>()

/** Receives a body as it arrives, and refuses it early if possible. */
function receive(request: FastifyRequest, body: IncomingMessage, upload: ZoneUpload): Promise<ZoneUpload> {
  if (body.destroyed) throw closedByClient()
  uploads.set(request, upload)
  return new Promise((resolve, reject) => {
    body.on('data', (chunk: Buffer) => {
      try {
        upload.push(chunk)
      } catch (error) {
        body.removeAllListeners('data')
        reject(error)
      }
    })
    body.once('end', () => resolve(upload))
    body.once('error', reject)
    body.once('close', () => reject(closedByClient()))
  })
}

function discard(request: FastifyRequest): void {
  uploads.get(request)?.discard()
  uploads.delete(request)
}

export const zoneRoutes: RoutePlugin = async (app, { deps }) => {
  const { db, config, zoneWork } = deps

  // Only here: everywhere else a body is JSON.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser(zoneFileTypes, async (request: FastifyRequest, body: IncomingMessage) => {
    if (Number(request.headers['content-length'] ?? 0) > zoneFileLimitBytes) throw new Fault('body_too_large')
    return receive(request, body, zoneWork.upload(request.actor.accountId))
  })
  // Runs whenever the work has ended, even if the client is gone or disconnects before its file is read.
  app.addHook('onSend', async (request) => discard(request))
  app.addHook('onRequest', async (request, reply) => void reply.raw.once('close', () => discard(request)))

  app.get(
    '/dns/:domain/zone',
    {
      config: { scope: 'dns:read', inZoneParts: true },
      schema: {
        operationId: 'exportZone',
        tags: ['DNS'],
        summary: 'Export the zone',
        description:
          'The zone as a BIND zone file. ALIAS records and the addresses that the nameservers add by themselves are ' +
          'comments to every other program.',
        params: ZoneParams,
        response: { 200: { description: 'The zone file', content: { 'text/dns': { schema: Named(ZoneFile) } } } },
      },
    },
    async (request, reply) => {
      const options = { options: config, signal: untilGone(reply) }
      const { octets, etag } = await zoneWork.exportZone(request.actor, request.params.domain, options)
      reply.type('text/dns; charset=utf-8')
      return sendOctets(request, reply, Buffer.from(octets.buffer), etag)
    },
  )

  app.put(
    '/dns/:domain/zone',
    {
      config: {
        scope: 'dns:write',
        inZoneParts: true,
        showsServed: 'Zone-Served',
        faults: ['quota_exceeded', 'import_in_progress', 'precondition_required', 'zone_follows_primary'],
      },
      // The body is text only in the document. Here it is a stream that nobody has read yet.
      validatorCompiler: (route) => (route.httpPart === 'body' ? () => true : compileValidator(route)),
      schema: {
        operationId: 'importZone',
        tags: ['DNS'],
        summary: 'Import a zone',
        description:
          'Replaces the records of the zone by those of a BIND zone file. Records that are in both keep their ids. ' +
          'What became of every line is in `lines`: SOA, apex NS and out-of-zone lines are skipped, exports of Cloudflare, ' +
          'GoDaddy, Route 53 and BIND are understood. A line that cannot be read refuses the file, and so does one that is ' +
          'not supported, unless `skipUnsupported` is given. All changes are one event, `dns.zone.imported`. ' +
          'An account imports one large file at a time. ' +
          'A zone that has records is replaced only with `If-Match`: the ETag of its export, or `*` for whatever is there.',
        consumes: zoneFileTypes,
        params: ZoneParams,
        querystring: ZoneImportQuery,
        body: ZoneFile,
        response: { 200: Named(ZoneImport) },
      },
    },
    async (request, reply) => {
      const upload = uploads.get(request)
      if (!upload) throw invalidField('#', 'required', 'A zone file is required.')
      const ifMatch = request.headers['if-match']
      const { dryRun = false, skipUnsupported = false } = request.query
      const options = { upload, dryRun, skipUnsupported, ifMatch, options: config, signal: untilGone(reply) }
      const { octets } = await zoneWork.importZone(request.actor, request.params.domain, options)
      return reply.type('application/json; charset=utf-8').send(Buffer.from(octets.buffer) as never)
    },
  )

  app.get(
    '/dns/:domain/zone/status',
    {
      // Queries the nameservers each time.
      config: { scope: 'dns:read', inZoneParts: true, withoutEtag: true },
      schema: {
        operationId: 'getZoneStatus',
        tags: ['DNS'],
        summary: 'Compare the nameservers',
        description:
          'The serial of the zone in the database, and the one that each nameserver and secondary serves at this moment. ' +
          'Where it is another one, `error` and `reason` say why, and `since` for how long. `secondaries` are your own, with ' +
          'what they served when they were last asked: after each change, until they serve it.',
        params: ZoneParams,
        response: { 200: Named(ZoneStatus) },
      },
    },
    async (request) => {
      const zone = await findZone(db, request.actor, request.params.domain)
      // Our own listeners have the names that the domain uses; secondaries have only their address.
      const names = nameserversOf(config.nameservers, zone.nameservers)
      const own = config.nameserverListen.map((address, index) => ({ address, name: names[index] ?? address }))
      const secondaries = config.nameserverSecondaries.map((address) => ({ address, name: address }))
      const lags = await lagsOf(db, zone.id)
      const nameservers = await Promise.all(
        [...own, ...secondaries].map(async ({ name, address }) => {
          const { serial, error } = await probeSoa(address, zone.name)
          const current = serial === zone.serial
          return { name, address, serial, current, ...explainLag(current, error, lags.get(address)) }
        }),
      )
      const customers = await secondariesOf(db, request.actor, zone)
      return { domain: zone.name, serial: zone.serial, nameservers, secondaries: customers }
    },
  )
}
