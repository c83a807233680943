// /dns/{domain}/dnssec: read, turn on and off, roll over; and the keys of another provider that also signs the zone.
import type { Static } from '@sinclair/typebox'
import { Named } from '../../schemas/common.ts'
import { ZoneParams } from '../../schemas/dns-records.ts'
import { Dnssec, ForeignKeys, PutDnssec, PutForeignKeys } from '../../schemas/dnssec.ts'
import {
  checkDnssec,
  dnssecVersion,
  findDnssec,
  findForeignKeys,
  putDnssec,
  putForeignKeys,
  rollOver,
} from '../../services/dns/index.ts'
import { precondition, sendLive, sendSingle } from '../http/responses/etag.ts'
import { NoContent, type RoutePlugin } from './route.ts'

export const dnssecRoutes: RoutePlugin = async (app, { deps, once }) => {
  const { db, config, vault } = deps
  const options = { dnssec: config.dnssec, vault }

  app.get(
    '/dns/:domain/dnssec',
    {
      config: { scope: 'dns:read', inZoneParts: true },
      schema: {
        operationId: 'getDnssec',
        tags: ['DNS'],
        summary: 'Read how a zone is signed',
        description:
          'The keys of the zone, the DS records that belong at its registrar, and what the zone above shows of them. ' +
          '`reason` says what to do next.',
        params: ZoneParams,
        response: { 200: Named(Dnssec) },
      },
    },
    async (request, reply) => {
      const view = await findDnssec(db, options, request.actor, request.params.domain)
      return sendLive(request, reply, view, dnssecVersion(view))
    },
  )

  app.put(
    '/dns/:domain/dnssec',
    {
      config: {
        scope: 'dns:write',
        inZoneParts: true,
        showsVersion: true,
        meaning: ({ actor, params }) => checkDnssec(db, actor, (params as Static<typeof ZoneParams>).domain),
      },
      schema: {
        operationId: 'putDnssec',
        tags: ['DNS'],
        summary: 'Sign a zone, or end that',
        description:
          'Domains that are delegated to the nameservers here are signed by default. `enabled: false` ends that: the zone ' +
          'stays signed until the parent has no DS record and every cache has forgotten it. It takes effect step by step; ' +
          '`state` and the events `dns.dnssec.*` tell how far it is. Where the zone above is here too, we add the DS record to ' +
          'it, and remove it again.',
        params: ZoneParams,
        body: PutDnssec,
        response: { 200: Named(Dnssec) },
      },
    },
    async (request, reply) => {
      const change = { path: request.params.domain, input: request.body, precondition: precondition(request) }
      const view = await putDnssec(db, options, request.actor, change)
      return sendLive(request, reply, view, dnssecVersion(view))
    },
  )

  app.delete(
    '/dns/:domain/dnssec',
    {
      config: { scope: 'dns:write', inZoneParts: true },
      schema: {
        operationId: 'deleteDnssec',
        tags: ['DNS'],
        summary: 'End the signing of a zone',
        description: 'The same as `PUT` with `enabled: false`.',
        params: ZoneParams,
        response: { 204: NoContent },
      },
    },
    async (request, reply) => {
      const change = { path: request.params.domain, input: { enabled: false }, precondition: precondition(request) }
      await putDnssec(db, options, request.actor, change)
      return reply.code(204).send(null)
    },
  )

  app.get(
    '/dns/:domain/dnssec/foreign-keys',
    {
      config: { scope: 'dns:read', inZoneParts: true },
      schema: {
        operationId: 'getForeignKeys',
        tags: ['DNS'],
        summary: 'Read the keys of another provider that signs the zone too',
        params: ZoneParams,
        response: { 200: Named(ForeignKeys) },
      },
    },
    async (request, reply) => {
      return sendSingle(request, reply, await findForeignKeys(db, options, request.actor, request.params.domain))
    },
  )

  app.put(
    '/dns/:domain/dnssec/foreign-keys',
    {
      config: {
        scope: 'dns:write',
        inZoneParts: true,
        showsVersion: true,
        meaning: ({ actor, params }) => checkDnssec(db, actor, (params as Static<typeof ZoneParams>).domain),
      },
      schema: {
        operationId: 'putForeignKeys',
        tags: ['DNS'],
        summary: 'Set the keys of another provider that signs the zone too',
        description:
          'For moving a signed domain in or out without a moment without DNSSEC (RFC 8901): we sign these keys with ours, ' +
          'so that resolvers accept answers of both providers. The other provider has to add our `dnskey` to its keys. A DS ' +
          'record of these keys at the parent does not keep us from signing.',
        params: ZoneParams,
        body: PutForeignKeys,
        response: { 200: Named(ForeignKeys) },
      },
    },
    async (request, reply) => {
      const change = { path: request.params.domain, input: request.body, precondition: precondition(request) }
      const view = await putForeignKeys(db, options, request.actor, change)
      return sendSingle(request, reply, view)
    },
  )

  app.post(
    '/dns/:domain/dnssec/rollover',
    {
      config: { scope: 'dns:write', inZoneParts: true, faults: ['dnssec_not_ready'] },
      schema: {
        operationId: 'rollOverDnssec',
        tags: ['DNS'],
        summary: 'Replace the key of a zone',
        description:
          'A new key signs beside the present one, which goes when the parent has shown the DS record of the new one for ' +
          'as long as caches keep it. Where the registrar does not read CDS records, set the DS record in `ds` there when ' +
          'the event `dns.dnssec.rollover_announced` comes.',
        params: ZoneParams,
        response: { 202: Named(Dnssec) },
      },
    },
    (request, reply) =>
      once(request, reply, {
        status: 202,
        work: (db) => rollOver(db, options, request.actor, request.params.domain),
      }),
  )
}
