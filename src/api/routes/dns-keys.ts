// /dns/{domain}/keys: list, create, read, delete.
import type { Static } from '@sinclair/typebox'
import { Named } from '../../schemas/common.ts'
import {
  CreateDnsKey,
  DnsKey,
  DnsKeyList,
  DnsKeyParams,
  DnsKeyQuery,
  DnsKeyWithSecret,
} from '../../schemas/dns-keys.ts'
import { ZoneParams } from '../../schemas/dns-records.ts'
import { checkKey, createKey, deleteKey, findKey, keyVersion, listKeys } from '../../services/dns/index.ts'
import { precondition, sendSingle } from '../http/responses/etag.ts'
import { readPage, sendPage } from '../http/responses/page.ts'
import { NoContent, type RoutePlugin, type SoundBody } from './route.ts'

export const dnsKeyRoutes: RoutePlugin = async (app, { deps, once }) => {
  const { db, vault } = deps
  const allowPrivate = !deps.config.production

  app.get(
    '/dns/:domain/keys',
    {
      config: { scope: 'dns:read', inZoneParts: true },
      schema: {
        operationId: 'listDnsKeys',
        tags: ['DNS'],
        summary: 'List keys',
        description: 'The keys of the zone, newest first, without their secrets.',
        params: ZoneParams,
        querystring: DnsKeyQuery,
        response: { 200: Named(DnsKeyList) },
      },
    },
    async (request, reply) => {
      const page = readPage(request.query, 'keys')
      return sendPage(request, reply, page, { keys: await listKeys(db, request.actor, request.params.domain, page) })
    },
  )

  app.post(
    '/dns/:domain/keys',
    {
      config: {
        scope: 'dns:write',
        inZoneParts: true,
        faults: ['key_exists'],
        meaning: ({ actor, params }, body: SoundBody<typeof CreateDnsKey>) =>
          checkKey(db, actor, (params as Static<typeof ZoneParams>).domain, { input: body, allowPrivate }),
      },
      schema: {
        operationId: 'createDnsKey',
        tags: ['DNS'],
        summary: 'Create a key',
        description:
          'Makes a key by which `nsupdate` and other clients of RFC 2136 update the zone at its nameservers, or by which ' +
          'secondaries of your own transfer it. `names` and `types` narrow what it may update. It stays until it is ' +
          'deleted. The secret is in this answer and nowhere else: ' +
          '`nsupdate -y <algorithm>:<keyName>:<secret>`.',
        params: ZoneParams,
        body: CreateDnsKey,
        response: { 201: Named(DnsKeyWithSecret) },
      },
    },
    (request, reply) =>
      once(request, reply, {
        status: 201,
        work(db) {
          const { actor, params, body: input } = request
          return createKey(db, actor, params.domain, { input, vault, allowPrivate })
        },
        location: (key) => `/dns/${key.domain}/keys/${key.id}`,
        shown: ({ secret: _secret, ...key }) => keyVersion(key),
      }),
  )

  app.get(
    '/dns/:domain/keys/:id',
    {
      config: { scope: 'dns:read', inZoneParts: true },
      schema: {
        operationId: 'getDnsKey',
        tags: ['DNS'],
        summary: 'Read a key',
        description: 'A key of the zone, without its secret.',
        params: DnsKeyParams,
        response: { 200: Named(DnsKey) },
      },
    },
    async (request, reply) => {
      const key = await findKey(db, request.actor, request.params.domain, request.params.id)
      return sendSingle(request, reply, key, keyVersion(key))
    },
  )

  app.delete(
    '/dns/:domain/keys/:id',
    {
      config: { scope: 'dns:write', inZoneParts: true },
      schema: {
        operationId: 'deleteDnsKey',
        tags: ['DNS'],
        summary: 'Delete a key',
        description: 'No update is done with it any more, and the nameservers forget it within a second.',
        params: DnsKeyParams,
        response: { 204: NoContent },
      },
    },
    async (request, reply) => {
      await deleteKey(db, request.actor, request.params, precondition(request))
      return reply.code(204).send(null)
    },
  )
}
