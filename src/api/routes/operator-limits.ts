// /operator/accounts/{id}/limits: the limits of one account, set by the operator.

import { AccountLimits, ChangeLimits } from '../../schemas/account.ts'
import { Named } from '../../schemas/common.ts'
import { AccountParams } from '../../schemas/operator.ts'
import { changeLimits, readLimits } from '../../services/accounts/index.ts'
import { precondition, sendLive } from '../http/responses/etag.ts'
import type { RoutePlugin } from './route.ts'

const access = { scope: 'operator', accountWide: true } as const

export const operatorLimitRoutes: RoutePlugin = async (app, { deps }) => {
  const { db, config, tokenDirectory } = deps

  app.get(
    '/operator/accounts/:id/limits',
    {
      config: access,
      schema: {
        operationId: 'getAccountLimits',
        tags: ['Operator'],
        summary: 'Read the limits of an account',
        description: 'The quotas of the account, those that were set for it alone, and what it uses.',
        params: AccountParams,
        response: { 200: Named(AccountLimits) },
      },
    },
    async (request, reply) => {
      const view = await readLimits(db, config.quotas, request.params.id)
      return sendLive(request, reply, view, view.changed)
    },
  )

  app.patch(
    '/operator/accounts/:id/limits',
    {
      config: access,
      schema: {
        operationId: 'changeAccountLimits',
        tags: ['Operator'],
        summary: 'Change the limits of an account',
        description: 'Sets quotas for this account alone; null returns to the platform’s limit. Nothing is deleted.',
        params: AccountParams,
        body: ChangeLimits,
        response: { 200: Named(AccountLimits) },
      },
    },
    async (request, reply) => {
      const { actor, params, body } = request
      const change = { accountId: params.id, input: body, precondition: precondition(request) }
      const limits = await changeLimits(db, config.quotas, actor, change)
      // Other replicas learn about it from a notification; this one must not respond before its own cache is updated.
      tokenDirectory.forgetAccount(params.id)
      return sendLive(request, reply, limits, limits.changed)
    },
  )
}
