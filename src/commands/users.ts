// `berth users`: creates a link that signs a person in, and lists people.
import { Value } from '@sinclair/typebox/value'
import type { Config } from '../config.ts'
import type { Database } from '../platform/database/database.ts'
import { openStorage } from '../roles/opening/storage.ts'
import { Email } from '../schemas/people.ts'
import {
  findPerson,
  listPeople,
  provisionLink,
  type Role,
  roles,
  setupUrl,
  UnverifiedEmail,
} from '../services/people/index.ts'
import { table } from './table.ts'
import { UsageError } from './usage-error.ts'

export type UserOptions = {
  account?: string | undefined
  role?: string | undefined
  operator?: boolean | undefined
  json?: boolean | undefined
}

/** `who`: an email address, or a person's id. */
export async function users(config: Config, verb: 'link' | 'list', who: string, options: UserOptions): Promise<void> {
  if (verb === 'link') checkLink(who, options)
  const { db, close } = await openStorage(config)
  try {
    console.log(await (verb === 'link' ? linkText(db, config, who, options) : listText(db, options)))
  } finally {
    await close()
  }
}

function checkLink(who: string, { role = 'owner' }: UserOptions): void {
  if (!who.startsWith('usr_') && !Value.Check(Email, who)) {
    throw new UsageError(`${who} is not an email address such as ada@example.com.`)
  }
  if (!(role in roles)) throw new UsageError(`There is no role ${role}. Use ${Object.keys(roles).join(', ')}.`)
}

async function linkText(db: Database, { baseUrl }: Config, who: string, options: UserOptions): Promise<string> {
  const account = await accountFor(db, who, options.account)
  const role = (options.role ?? 'owner') as Role
  const link = { who, account, role, operator: options.operator }
  const { user, isNew, memberships, code } = await provisionLink(db, link).catch((error) => {
    throw error instanceof UnverifiedEmail ? new UsageError(error.message) : error
  })
  // Whoever sent the invitation may have opened it in that person's name.
  const unproved = user.emailProvedAt ? '' : ', email not verified'
  const since = isNew ? 'new' : `known since ${user.createdAt.toISOString().slice(0, 10)}${unproved}`
  const accounts = memberships.map(({ account: { name }, role }) => `${name} (${role})`)
  return [
    `Person     ${user.id}  ${user.email}  (${since}${user.operator ? ', operator' : ''})`,
    `Accounts   ${accounts.join(', ') || 'none'}`,
    `Link       ${setupUrl(baseUrl, code)}      (30 minutes, once)`,
  ].join('\n')
}

/** A new person needs an account; if there is only one, it is that one. */
async function accountFor(db: Database, who: string, idOrName: string | undefined) {
  const known = await findPerson(db, who)
  if (!known && !who.includes('@')) throw new UsageError(`There is no person ${who}.`)
  if (idOrName !== undefined) {
    const found = await db.account.findFirst({ where: { OR: [{ id: idOrName }, { name: idOrName }] } })
    if (!found) throw new UsageError(`There is no account ${idOrName}.`)
    return found
  }
  if (known) return null
  const [only, second] = await db.account.findMany({ take: 2 })
  if (!only || second) throw new UsageError(`${who} is new here: choose an account with --account.`)
  return only
}

async function listText(db: Database, { json = false }: UserOptions): Promise<string> {
  const people = (await listPeople(db)).map(({ id, email, name, operator, memberships }) => ({
    ...{ id, email, name, operator },
    accounts: memberships.map(({ account, role }) => ({ name: account.name, role })),
  }))
  if (json) return JSON.stringify(people, null, 2)
  if (people.length === 0) return 'There is nobody yet; `berth users link <email>` creates a link for the first person.'
  const rows = people.map(({ id, email, name, operator, accounts }) => {
    const text = accounts.map((one) => `${one.name} (${one.role})`).join(', ')
    return [id, email, name, operator ? 'operator' : '', text]
  })
  return table(['ID', 'EMAIL', 'NAME', '', 'ACCOUNTS'], rows)
}
