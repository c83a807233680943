// /account and /regions: who the caller is, and where things run.

import { Account, AccountUsage, MonthUsageQuery, Regions } from '../../schemas/account.ts'
import { Named } from '../../schemas/common.ts'
import { readAccount, readMonths } from '../../services/accounts/index.ts'
import { zoneFileLimitBytes } from '../../services/dns/index.ts'
import { bodyLimitBytes } from '../http/requests/validation.ts'
import { sendSingle } from '../http/responses/etag.ts'
import type { RoutePlugin } from './route.ts'

export const accountRoutes: RoutePlugin = async (app, { deps }) => {
  const { db, config, sharedLimits } = deps

  app.get(
    '/account',
    {
      config: { scope: null },
      schema: {
        operationId: 'getAccount',
        tags: ['Account'],
        summary: 'Read the account',
        description:
          'The account of the calling token, its limits and what it uses. A token narrowed to projects sees what these use.',
        response: { 200: Named(Account) },
      },
    },
    async (request, reply) => {
      const account = await readAccount(db, config.quotas, request.actor)
      const limits = {
        requestsPerMinute: config.rateLimitPerMinute,
        accountRequestsPerMinute: config.rateLimitPerAccountPerMinute,
        requestsAtOnce: config.maxInFlightPerAccount,
        bodyBytes: bodyLimitBytes,
        zoneImportBytes: zoneFileLimitBytes,
        ...account.limits,
      }
      const here = app.shares.usage(account.id)
      const elsewhere = (await sharedLimits?.elsewhere(account.id)) ?? { waits: 0, streams: 0 }
      const open = { waits: here.waits + elsewhere.waits, streams: here.streams + elsewhere.streams }
      const usage = { ...account.usage, ...open }
      return sendSingle(request, reply, { ...account, limits, usage })
    },
  )

  app.get(
    '/account/usage',
    {
      config: { scope: null, accountWide: true },
      schema: {
        operationId: 'getAccountUsage',
        tags: ['Account'],
        summary: 'Read usage by month',
        description: 'Minutes of builds and the most that was stored at once, for each of up to 36 months (UTC).',
        querystring: MonthUsageQuery,
        response: { 200: Named(AccountUsage) },
      },
    },
    async (request, reply) => sendSingle(request, reply, await readMonths(db, request.actor, request.query)),
  )

  app.get(
    '/regions',
    {
      config: { scope: null },
      schema: {
        operationId: 'listRegions',
        tags: ['Account'],
        summary: 'List regions',
        description: 'The regions in which projects are built and served.',
        response: { 200: Named(Regions) },
      },
    },
    async (request, reply) => sendSingle(request, reply, { regions: [{ id: config.region, default: true }] }),
  )
}
