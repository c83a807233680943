// /domains: attach, read, wait, check again, move, redirect, delete.

import { Named, waitQuery } from '../../schemas/common.ts'
import { ChangeDomain, CreateDomain, Domain, DomainList, DomainParams, DomainQuery } from '../../schemas/domains.ts'
import {
  attachDomain,
  changeDomain,
  checkDomainChange,
  checkNewDomain,
  deleteDomain,
  findDomain,
  isSettled,
  listDomains,
  requestVerification,
  showDomain,
} from '../../services/domains/index.ts'
import { nameInPath } from '../../services/names/index.ts'
import { precondition, sendSingle } from '../http/responses/etag.ts'
import { readPage, sendPage } from '../http/responses/page.ts'
import { NoContent, type RoutePlugin, type SoundBody } from './route.ts'

export const domainRoutes: RoutePlugin = async (app, { deps, once }) => {
  const { db, config } = deps

  app.post(
    '/domains',
    {
      config: {
        scope: 'domains:write',
        faults: ['not_found', 'domain_exists', 'domain_taken'],
        meaning: ({ actor }, body: SoundBody<typeof CreateDomain>) => checkNewDomain(db, config, actor, body),
      },
      schema: {
        operationId: 'createDomain',
        tags: ['Domains'],
        summary: 'Attach a domain',
        description:
          'Attaches a custom domain to a project. Point it to exactly its own `nameservers`, or add the record in ' +
          '`verification.txt`; where only the record can prove it, `verification.reason` says so already here. ' +
          'Records are not answered while several accounts claim a name and none has proved it. The domain is ' +
          'checked at once and then again and again, for 30 days, and gets its certificate as soon as it is verified. A ' +
          'wildcard such as `*.example.com` needs `example.com` to be attached. With `redirectTo` its visitors are sent to ' +
          'another domain of the account, over HTTP and HTTPS, with path and query.',
        body: CreateDomain,
        response: { 201: Named(Domain) },
      },
    },
    (request, reply) =>
      once(request, reply, {
        status: 201,
        work: (db) => attachDomain(db, config, request.actor, request.body),
        location: (domain) => `/domains/${domain.name}`,
      }),
  )

  app.get(
    '/domains',
    {
      config: { scope: 'domains:read' },
      schema: {
        operationId: 'listDomains',
        tags: ['Domains'],
        summary: 'List domains',
        description: 'Domains of all projects or of one, newest first.',
        querystring: DomainQuery,
        response: { 200: Named(DomainList) },
      },
    },
    async (request, reply) => {
      const page = readPage(request.query, 'domains')
      const domains = await listDomains(db, config, request.actor, { filter: request.query, page })
      return sendPage(request, reply, page, { domains })
    },
  )

  app.get(
    '/domains/:name',
    {
      config: { scope: 'domains:read', faults: ['quota_exceeded'] },
      schema: {
        operationId: 'getDomain',
        tags: ['Domains'],
        summary: 'Read a domain',
        description:
          'Verification and certificate. With `wait`, the answer comes when the domain is verified and its certificate ' +
          'has come or failed, or the seconds are over.',
        params: DomainParams,
        querystring: waitQuery,
        response: { 200: Named(Domain) },
      },
    },
    async (request, reply) => {
      const name = nameInPath(request.params.name)
      const row = await app.waits.until(request, {
        subject: name,
        waitSeconds: request.query.wait,
        read: () => findDomain(db, request.actor, name),
        settled: isSettled,
      })
      return sendSingle(request, reply, await showDomain(db, config, row))
    },
  )

  app.post(
    '/domains/:name/verify',
    {
      config: { scope: 'domains:write', faults: ['claim_ended'] },
      schema: {
        operationId: 'verifyDomain',
        tags: ['Domains'],
        summary: 'Check a domain now',
        description:
          'Asks the DNS now instead of at `verification.nextCheckAt`; read the domain to see what came of it. A domain ' +
          'that was not proved within 30 days is not checked any more, however often that is asked for.',
        params: DomainParams,
        response: { 202: Named(Domain) },
      },
    },
    (request, reply) =>
      once(request, reply, {
        status: 202,
        work: (db) => requestVerification(db, config, request.actor, request.params.name),
      }),
  )

  app.patch(
    '/domains/:name',
    {
      config: {
        scope: 'domains:write',
        faults: ['domain_has_redirects'],
        meaning: ({ actor, params }, body: SoundBody<typeof ChangeDomain>) =>
          checkDomainChange(db, actor, (params as { name: string }).name, body),
      },
      schema: {
        operationId: 'changeDomain',
        tags: ['Domains'],
        summary: 'Move or redirect a domain',
        description:
          'Moves the domain to another project: its zone, certificate and verification stay, and visitors see the other ' +
          'project at once. Or has it redirect to another domain of the account, which does not redirect itself, as ' +
          '`www` to the name without it, or an old name to a new one; until that one is verified, the domain shows its ' +
          'project. A token that is narrowed to projects needs both projects.',
        params: DomainParams,
        body: ChangeDomain,
        response: { 200: Named(Domain) },
      },
    },
    async (request, reply) => {
      const { actor, body: input } = request
      const change = { path: request.params.name, input, precondition: precondition(request) }
      return sendSingle(request, reply, await changeDomain(db, config, actor, change))
    },
  )

  app.delete(
    '/domains/:name',
    {
      config: { scope: 'domains:write', faults: ['domain_has_wildcard', 'domain_has_redirects'] },
      schema: {
        operationId: 'deleteDomain',
        tags: ['Domains'],
        summary: 'Delete a domain',
        description:
          'Takes its DNS records along. A verified name stays reserved for the account for 7 days, so that a forgotten ' +
          'delegation cannot be claimed by someone else.',
        params: DomainParams,
        response: { 204: NoContent },
      },
    },
    async (request, reply) => {
      const { name: path } = request.params
      await deleteDomain(db, config, request.actor, { path, precondition: precondition(request) })
      return reply.code(204).send(null)
    },
  )
}
