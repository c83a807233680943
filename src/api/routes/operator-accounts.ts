// /operator/accounts: list, create, read, suspend, resume.
import { Named } from '../../schemas/common.ts'
import {
  AccountList,
  AccountParams,
  AccountQuery,
  ChangeAccount,
  CreateAccount,
  NewAccount,
  OperatorAccount,
} from '../../schemas/operator.ts'
import { findAccount, listAccounts, openAccount, viewAccount } from '../../services/accounts/index.ts'
import { changeAccount, checkSuspension } from '../../services/suspension/index.ts'
import { deprecatedToken, withoutSecret } from '../http/responses/deprecation.ts'
import { precondition, sendSingle } from '../http/responses/etag.ts'
import { readPage, sendPage } from '../http/responses/page.ts'
import type { RoutePlugin, SoundBody } from './route.ts'

const access = { scope: 'operator', accountWide: true } as const

export const operatorAccountRoutes: RoutePlugin = async (app, { deps, once }) => {
  const { db, urls, tokenDirectory } = deps

  app.get(
    '/operator/accounts',
    {
      config: access,
      schema: {
        operationId: 'listAccounts',
        tags: ['Operator'],
        summary: 'List accounts',
        description: 'All accounts of the platform, newest first.',
        querystring: AccountQuery,
        response: { 200: Named(AccountList) },
      },
    },
    async (request, reply) => {
      const page = readPage(request.query, 'accounts')
      return sendPage(request, reply, page, { accounts: await listAccounts(db, page) })
    },
  )

  app.post(
    '/operator/accounts',
    {
      config: { ...access, deprecated: deprecatedToken, faults: ['account_exists'] },
      schema: {
        operationId: 'createAccount',
        tags: ['Operator'],
        summary: 'Create an account',
        description: 'The answer holds the test key of the account, which is never shown again.',
        body: CreateAccount,
        response: { 201: Named(NewAccount) },
      },
    },
    (request, reply) =>
      once(request, reply, {
        status: 201,
        work: (db) => openAccount(db, request.actor, request.body.name),
        location: (account) => `/operator/accounts/${account.id}`,
        shown: withoutSecret,
      }),
  )

  app.get(
    '/operator/accounts/:id',
    {
      config: access,
      schema: {
        operationId: 'getAccountAsOperator',
        tags: ['Operator'],
        summary: 'Read an account',
        description: 'Its name, and whether it is suspended.',
        params: AccountParams,
        response: { 200: Named(OperatorAccount) },
      },
    },
    async (request, reply) => sendSingle(request, reply, viewAccount(await findAccount(db, request.params.id))),
  )

  app.patch(
    '/operator/accounts/:id',
    {
      config: {
        ...access,
        meaning: ({ actor, params }, body: SoundBody<typeof ChangeAccount>) =>
          checkSuspension(actor, (params as { id: string }).id, body),
      },
      schema: {
        operationId: 'changeAccount',
        tags: ['Operator'],
        summary: 'Suspend or resume an account',
        description:
          'Everything of a suspended account stops: tokens and pushes are refused with 403 `account_suspended`, builds ' +
          'are canceled, servers stopped, and sites and domains answer 403 with a page that says nothing about the ' +
          'owner. DNS goes on, unless `dns` is `refuse`. Webhooks get the event `account.suspended` and no other until ' +
          'the account is resumed, which brings everything back but the canceled builds.',
        params: AccountParams,
        body: ChangeAccount,
        response: { 200: Named(OperatorAccount) },
      },
    },
    async (request, reply) => {
      const { actor, params, body } = request
      const change = { urls, input: body, precondition: precondition(request) }
      const account = await changeAccount(db, actor, params.id, change)
      // Other replicas learn about it from a notification; this one must not respond before its own cache is updated.
      tokenDirectory.forgetAccount(account.id)
      return sendSingle(request, reply, account)
    },
  )
}
