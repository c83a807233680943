// /dns/{domain}/records: list, create, read, change, delete, batch.
import type { Static } from '@sinclair/typebox'
import { Named } from '../../schemas/common.ts'
import {
  ChangeDnsRecord,
  CreateDnsRecord,
  DnsBatch,
  DnsBatchResult,
  DnsRecord,
  DnsRecordList,
  DnsRecordParams,
  DnsRecordQuery,
  DryRunQuery,
  ServedQuery,
  ZoneParams,
} from '../../schemas/dns-records.ts'
import {
  addRecord,
  applyBatch,
  applyPlanned,
  changeRecord,
  checkBatch,
  checkChange,
  checkRecord,
  deleteRecord,
  findRecord,
  listRecords,
} from '../../services/dns/index.ts'
import { precondition, sendSingle } from '../http/responses/etag.ts'
import { readPage, sendPage } from '../http/responses/page.ts'
import { NoContent, type RoutePlugin, type SoundBody } from './route.ts'

const reads = { scope: 'dns:read', inZoneParts: true } as const
const writes = { scope: 'dns:write', inZoneParts: true, showsServed: 'Zone-Served' } as const
const writeFaults = ['record_conflict', 'zone_follows_primary', 'quota_exceeded'] as const

type ZonePath = Static<typeof ZoneParams>
type RecordPath = Static<typeof DnsRecordParams>

export const dnsRecordRoutes: RoutePlugin = async (app, { deps, once }) => {
  const { db, zoneWork } = deps

  app.post(
    '/dns/:domain/records',
    {
      config: {
        ...writes,
        faults: [...writeFaults],
        meaning: ({ actor, params }, body: SoundBody<typeof CreateDnsRecord>) =>
          checkRecord(db, actor, (params as ZonePath).domain, body),
      },
      schema: {
        operationId: 'createDnsRecord',
        tags: ['DNS'],
        summary: 'Create a record',
        description:
          'Adds a record to the zone of an attached domain, verified or not. The value is checked and stored in the ' +
          'canonical form of its type.',
        params: ZoneParams,
        querystring: ServedQuery,
        body: CreateDnsRecord,
        response: { 201: Named(DnsRecord) },
      },
    },
    (request, reply) =>
      once(request, reply, {
        status: 201,
        work: (db) => addRecord(db, request.actor, request.params.domain, request.body),
        location: (record) => `/dns/${record.domain}/records/${record.id}`,
      }),
  )

  app.get(
    '/dns/:domain/records',
    {
      config: reads,
      schema: {
        operationId: 'listDnsRecords',
        tags: ['DNS'],
        summary: 'List records',
        description: 'Records of the zone, by name.',
        params: ZoneParams,
        querystring: DnsRecordQuery,
        response: { 200: Named(DnsRecordList) },
      },
    },
    async (request, reply) => {
      const page = readPage(request.query, 'records', 2, 'asc')
      const records = await listRecords(db, request.actor, request.params.domain, { filter: request.query, page })
      return sendPage(request, reply, page, { records })
    },
  )

  app.post(
    '/dns/:domain/records/batch',
    {
      config: {
        ...writes,
        faults: [...writeFaults],
        meaning: ({ actor, params }, body: SoundBody<typeof DnsBatch>) =>
          checkBatch(db, actor, (params as ZonePath).domain, body),
      },
      schema: {
        operationId: 'changeDnsRecords',
        tags: ['DNS'],
        summary: 'Change many records',
        description:
          'Deletes, then updates, then creates, all or nothing; what counts is the zone that results, so two records ' +
          'may swap their values. Errors point to the operation by its index. The serial grows by one in all.',
        params: ZoneParams,
        querystring: DryRunQuery,
        body: DnsBatch,
        response: { 200: Named(DnsBatchResult) },
      },
    },
    (request, reply) => {
      const { actor, body: batch, query } = request
      const { domain } = request.params
      const change = { batch, dryRun: query.dryRun ?? false }
      return once(request, reply, {
        status: 200,
        dry: change.dryRun,
        prepare: () => zoneWork.planBatch(actor, domain, change),
        async work(db, plan): Promise<Static<typeof DnsBatchResult>> {
          if (!plan) return applyBatch(db, actor, domain, change)
          const text = await applyPlanned(db, actor, domain, { ...change, plan })
          // `text` is already JSON.
          reply.type('application/json; charset=utf-8').serializer((payload: unknown) => payload as string)
          return text as never
        },
      })
    },
  )

  app.get(
    '/dns/:domain/records/:id',
    {
      config: reads,
      schema: {
        operationId: 'getDnsRecord',
        tags: ['DNS'],
        summary: 'Read a record',
        description: 'One record of the zone.',
        params: DnsRecordParams,
        response: { 200: Named(DnsRecord) },
      },
    },
    async (request, reply) => sendSingle(request, reply, await findRecord(db, request.actor, request.params)),
  )

  app.patch(
    '/dns/:domain/records/:id',
    {
      config: {
        ...writes,
        faults: [...writeFaults],
        meaning: ({ actor, params }, body: SoundBody<typeof ChangeDnsRecord>) =>
          checkChange(db, actor, params as RecordPath, body),
      },
      schema: {
        operationId: 'changeDnsRecord',
        tags: ['DNS'],
        summary: 'Change a record',
        description: 'Changes name, value, ttl or comment; what is left out stays. The type never changes.',
        params: DnsRecordParams,
        querystring: ServedQuery,
        body: ChangeDnsRecord,
        response: { 200: Named(DnsRecord) },
      },
    },
    async (request, reply) => {
      const change = { change: request.body, precondition: precondition(request) }
      return sendSingle(request, reply, await changeRecord(db, request.actor, request.params, change))
    },
  )

  app.delete(
    '/dns/:domain/records/:id',
    {
      config: { ...writes, faults: ['record_conflict', 'zone_follows_primary'] },
      schema: {
        operationId: 'deleteDnsRecord',
        tags: ['DNS'],
        summary: 'Delete a record',
        description: 'The nameservers stop answering with it. The last NS record of a name with a DS record stays.',
        params: DnsRecordParams,
        querystring: ServedQuery,
        response: { 204: NoContent },
      },
    },
    async (request, reply) => {
      await deleteRecord(db, request.actor, request.params, precondition(request))
      return reply.code(204).send(null)
    },
  )
}
