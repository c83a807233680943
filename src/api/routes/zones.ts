// /dns/{domain}/zone: the zone file out and in, and what the nameservers serve of it.

import { probeSoa } from '../../dns/soa-probe.ts'
import { Fault } from '../../platform/errors.ts'
import { Named } from '../../schemas/common.ts'
import { DryRunQuery, ZoneParams } from '../../schemas/dns-records.ts'
import { ZoneFileBody, ZoneFileText, ZoneImport, ZoneStatus } from '../../schemas/zones.ts'
import { findZone } from '../../services/dns/dns-records.ts'
import { exportZone, importZone } from '../../services/dns/zones.ts'
import { nameserversOf } from '../../services/domains/nameservers.ts'
import { sendSingle } from '../http/etag.ts'
import type { RoutePlugin } from './route.ts'

const zoneFileTypes = ['text/dns', 'text/plain']
const zoneFileLimitBytes = 1024 * 1024
const utf8 = new TextDecoder('utf-8', { fatal: true })

export const zoneRoutes: RoutePlugin = async (app, { deps }) => {
  const { db, config } = deps

  // Only in this plugin: everywhere else a body is JSON, and here it never is.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser(
    zoneFileTypes,
    { parseAs: 'buffer', bodyLimit: zoneFileLimitBytes },
    (_request, raw: Buffer, done) => {
      try {
        done(null, utf8.decode(raw))
      } catch (cause) {
        const detail = 'The zone file is not UTF-8.'
        const errors = [{ in: 'body' as const, pointer: '#', code: 'bad_characters', detail }]
        done(new Fault('validation_failed', detail, { errors, cause }))
      }
    },
  )

  app.get(
    '/dns/:domain/zone',
    {
      config: { scope: 'dns:read' },
      schema: {
        operationId: 'exportZone',
        tags: ['DNS'],
        summary: 'Export the zone',
        description:
          'The zone as a BIND zone file. ALIAS records and the addresses that the nameservers add by themselves are ' +
          'comments to every other program.',
        params: ZoneParams,
        response: { 200: { description: 'The zone file', content: { 'text/dns': { schema: ZoneFileText } } } },
      },
    },
    async (request, reply) => {
      const text = await exportZone(db, config, request.actor, request.params.domain)
      reply.type('text/dns; charset=utf-8')
      return sendSingle(request, reply, text)
    },
  )

  app.put(
    '/dns/:domain/zone',
    {
      bodyLimit: zoneFileLimitBytes,
      config: { scope: 'dns:write', faults: ['quota_exceeded'] },
      schema: {
        operationId: 'importZone',
        tags: ['DNS'],
        summary: 'Import a zone',
        description:
          'Replaces the records of the zone by those of a BIND zone file. Records that are in both keep their ids. ' +
          'SOA, apex NS and out-of-zone lines are reported, not imported; a line that cannot be read refuses the file.',
        consumes: zoneFileTypes,
        params: ZoneParams,
        querystring: DryRunQuery,
        body: ZoneFileBody,
        response: { 200: Named(ZoneImport) },
      },
    },
    (request) => {
      const { body: text, query } = request
      return importZone(db, request.actor, request.params.domain, { text, dryRun: query.dryRun ?? false })
    },
  )

  app.get(
    '/dns/:domain/zone/status',
    {
      config: { scope: 'dns:read' },
      schema: {
        operationId: 'getZoneStatus',
        tags: ['DNS'],
        summary: 'Compare the nameservers',
        description:
          'The serial of the zone in the database, and the one that each nameserver and secondary serves at this moment.',
        params: ZoneParams,
        response: { 200: Named(ZoneStatus) },
      },
    },
    async (request) => {
      const zone = await findZone(db, request.actor, request.params.domain)
      // Our own listeners have the names that the domain knows them by; secondaries have none but their address.
      const names = nameserversOf(config.nameservers, zone.nameservers)
      const own = config.nameserverListen.map((address, index) => ({ address, name: names[index] ?? address }))
      const secondaries = config.nameserverSecondaries.map((address) => ({ address, name: address }))
      const nameservers = await Promise.all(
        [...own, ...secondaries].map(async ({ name, address }) => {
          const { serial, error } = await probeSoa(address, zone.name)
          return { name, address, serial, current: serial === zone.serial, error }
        }),
      )
      return { domain: zone.name, serial: zone.serial, nameservers }
    },
  )
}
