// /dns/{domain}/rrsets: list, read, replace, delete.
import type { Static } from '@sinclair/typebox'
import { Named } from '../../schemas/common.ts'
import { ServedQuery, ZoneParams } from '../../schemas/dns-records.ts'
import { DnsRrset, DnsRrsetList, DnsRrsetParams, DnsRrsetQuery, PutDnsRrset } from '../../schemas/rrsets.ts'
import { checkRrset, deleteRrset, findRrset, listRrsets, putRrset } from '../../services/dns/index.ts'
import { precondition, sendSingle } from '../http/responses/etag.ts'
import { readPage, sendPage } from '../http/responses/page.ts'
import { NoContent, type RoutePlugin, type SoundBody } from './route.ts'

type RrsetPath = Static<typeof DnsRrsetParams>

export const rrsetRoutes: RoutePlugin = async (app, { deps }) => {
  const { db } = deps

  app.get(
    '/dns/:domain/rrsets',
    {
      config: { scope: 'dns:read', inZoneParts: true },
      schema: {
        operationId: 'listDnsRrsets',
        tags: ['DNS'],
        summary: 'List RRsets',
        description: 'The records of the zone, those of one name and type together, by name and type.',
        params: ZoneParams,
        querystring: DnsRrsetQuery,
        response: { 200: Named(DnsRrsetList) },
      },
    },
    async (request, reply) => {
      const page = readPage(request.query, 'rrsets', 2, 'asc')
      const rrsets = await listRrsets(db, request.actor, request.params.domain, { filter: request.query, page })
      return sendPage(request, reply, page, { rrsets })
    },
  )

  app.get(
    '/dns/:domain/rrsets/:name/:type',
    {
      config: { scope: 'dns:read', inZoneParts: true },
      schema: {
        operationId: 'getDnsRrset',
        tags: ['DNS'],
        summary: 'Read an RRset',
        description: 'All records of one name and type.',
        params: DnsRrsetParams,
        response: { 200: Named(DnsRrset) },
      },
    },
    async (request, reply) => sendSingle(request, reply, await findRrset(db, request.actor, request.params)),
  )

  app.put(
    '/dns/:domain/rrsets/:name/:type',
    {
      config: {
        scope: 'dns:write',
        inZoneParts: true,
        showsServed: 'Zone-Served',
        showsVersion: true,
        faults: ['record_conflict', 'zone_follows_primary', 'quota_exceeded'],
        meaning: ({ actor, params }, body: SoundBody<typeof PutDnsRrset>) =>
          checkRrset(db, actor, params as RrsetPath, body),
      },
      schema: {
        operationId: 'putDnsRrset',
        tags: ['DNS'],
        summary: 'Replace an RRset',
        description:
          'Makes the records of one name and type what is asked for, whether there were any or not. Records whose value ' +
          'stays are kept. Asked for twice, it changes nothing the second time. The answer is the set as it is stored, ' +
          'with its ETag.',
        params: DnsRrsetParams,
        querystring: ServedQuery,
        body: PutDnsRrset,
        response: { 200: Named(DnsRrset) },
      },
    },
    async (request, reply) => {
      const change = { input: request.body, precondition: precondition(request) }
      return sendSingle(request, reply, await putRrset(db, request.actor, request.params, change))
    },
  )

  app.delete(
    '/dns/:domain/rrsets/:name/:type',
    {
      config: {
        scope: 'dns:write',
        inZoneParts: true,
        showsServed: 'Zone-Served',
        faults: ['record_conflict', 'zone_follows_primary'],
      },
      schema: {
        operationId: 'deleteDnsRrset',
        tags: ['DNS'],
        summary: 'Delete an RRset',
        description: 'Deletes all records of one name and type; where there are none, there is nothing to do.',
        params: DnsRrsetParams,
        querystring: ServedQuery,
        response: { 204: NoContent },
      },
    },
    async (request, reply) => {
      await deleteRrset(db, request.actor, request.params, precondition(request))
      return reply.code(204).send(null)
    },
  )
}
