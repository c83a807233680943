import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newId } from '../../../src/platform/ids.ts'
import { createAccount } from '../../../src/services/accounts/accounts.ts'
import { domainCertificate } from '../../../src/services/certificates/domain-certificates.ts'
import { createDeployment } from '../../../src/services/deployments/deployments.ts'
import { finishDeployment, type Outcome } from '../../../src/services/deployments/states.ts'
import { markEnded, markUnverified, markVerified } from '../../../src/services/domains/states.ts'
import { mailEvents, mailKindNames } from '../../../src/services/mail/kinds.ts'
import { redeemCode } from '../../../src/services/people/links.ts'
import { addMember } from '../../../src/services/people/memberships.ts'
import { openSession } from '../../../src/services/people/sessions.ts'
import { findProject } from '../../../src/services/projects/projects.ts'
import { disableWebhook } from '../../../src/services/webhooks/webhooks.ts'
import { newPerson } from '../../helpers/people.ts'
import { until } from '../../helpers/until.ts'
import { type Received, Refusal } from './mailbox.ts'
import { type MailWorld, startMailWorld } from './world.ts'

const dayMs = 86_400_000

let world: MailWorld
let support: string
beforeAll(async () => {
  world = await startMailWorld()
  support = (await createAccount(world.api.db, 'support desk', ['operator'])).token
  world.work()
})
afterAll(() => world.stop())

let made = 0

/** An account with an owner and a project. */
async function newOwner() {
  const owner = await world.account()
  const name = `site-${++made}`
  const { id } = await world.api.newProject(name, { token: owner.token })
  const actor = { accountId: owner.accountId, tokenId: 'system', scopes: [], projectIds: null }
  return { ...owner, project: name, projectId: id as string, actor }
}
type Owner = Awaited<ReturnType<typeof newOwner>>

async function deploy({ actor, project: name }: Owner, outcome: Outcome, production = true): Promise<string> {
  const { db, deps, config } = world.api
  const project = await findProject(db, actor, name)
  const plan = {
    project,
    ref: 'main',
    commit: 'a'.repeat(40),
    production,
    region: config.region,
    source: 'api' as const,
  }
  const { id } = await createDeployment(db, deps.urls, actor, plan)
  await finishDeployment(db, deps.urls, id, { ...outcome, by: 'system' })
  return id
}

const failed: Outcome = { to: 'ERROR', code: 'build_failed', message: 'npm run build exited with 1.\nits output' }
const ready: Outcome = { to: 'READY' }

/** The mails that one address has, when nothing more is to be sent. */
async function mailsTo(address: string): Promise<Received[]> {
  await world.idle()
  return world.mailbox.to(address)
}
const subjectsTo = async (address: string) => (await mailsTo(address)).map(({ subject }) => subject)

async function newDomain({ token, project }: Owner, name: string): Promise<string> {
  const added = await world.api.call('POST', '/domains', { body: { project, name }, token })
  expect(added.status, added.text).toBe(201)
  return (await world.api.db.domain.findFirstOrThrow({ where: { name } })).id
}

const observed = { nameservers: [], txt: [] }

async function loseDomain(id: string): Promise<void> {
  const { db, config } = world.api
  await db.domain.update({ where: { id }, data: { misses: 3 } })
  await markUnverified(db, config, id, { observed, reason: 'The TXT record is gone.' })
}

describe('one mail comes when', () => {
  test('support answers a ticket, and none when the customer does', async () => {
    const owner = await newOwner()
    const ticket = { subject: 'Why is <b>it</b> slow?', message: 'It is.' }
    const { id } = (await world.api.call('POST', '/tickets', { token: owner.token, body: ticket })).body
    const body = { message: 'secret answer' }
    await world.api.call('POST', `/tickets/${id}/messages`, { token: owner.token, body })
    await world.idle()
    await world.api.call('POST', `/operator/tickets/${id}/messages`, { token: support, body })
    const [mail, ...others] = await mailsTo(owner.email)
    expect(others).toEqual([])
    expect(mail!.subject).toBe('Support answered: Why is <b>it</b> slow?')
    expect(mail!.text).toContain(`http://localhost:3000/tickets/${id}\n`)
    expect(mail!.text).toContain('“Why is <b>it</b> slow?”')
    expect(mail!.html).toContain('“Why is &lt;b&gt;it&lt;/b&gt; slow?”')
    expect(mail!.html).toContain(`<a href="http://localhost:3000/tickets/${id}">Read the answer</a>`)
    expect(mail!.raw).not.toContain('secret answer')
  })

  test('production fails for the first time after it worked, and when it works again', async () => {
    const owner = await newOwner()
    await deploy(owner, ready)
    await deploy(owner, failed, false)
    expect(await subjectsTo(owner.email)).toEqual([])
    const first = await deploy(owner, failed)
    await deploy(owner, failed)
    await deploy(owner, { to: 'CANCELED' })
    await deploy(owner, failed)
    const [failure, ...more] = await mailsTo(owner.email)
    expect(more).toEqual([])
    expect(failure!.subject).toBe(`Production deployment of ${owner.project} failed`)
    expect(failure!.text).toContain(`/deployments/${first}\n`)
    expect(failure!.text).toContain('Reason: npm run build exited with 1.\n')
    expect(failure!.text).not.toContain('its output')
    await deploy(owner, ready, false)
    await deploy(owner, ready)
    await deploy(owner, ready)
    const [, recovery, ...rest] = await mailsTo(owner.email)
    expect(rest).toEqual([])
    expect(recovery!.subject).toBe(`Production deployment of ${owner.project} works again`)
    expect(recovery!.headers['in-reply-to']).toBe(failure!.headers['message-id'])
    await deploy(owner, failed)
    expect(await subjectsTo(owner.email)).toHaveLength(3)
  })

  test('a domain loses its verification, not when a claim ends that was never proved', async () => {
    const owner = await newOwner()
    const { db, config } = world.api
    const claim = await newDomain(owner, `claim-${made}.com`)
    await markEnded(db, config, claim, { observed, reason: 'The 30 days are over.' })
    const name = `lost-${made}.com`
    const id = await newDomain(owner, name)
    await markVerified(db, config, id, { observed, method: 'txt' })
    await loseDomain(id)
    const [mail, ...others] = await mailsTo(owner.email)
    expect(others).toEqual([])
    expect(mail!.subject).toBe(`${name} is no longer verified`)
    expect(mail!.text).toContain('Reason: The TXT record is gone.')
    expect(mail!.text).toContain(`http://localhost:3000/domains/${name}\n`)
    // It ends as a claim later, which is not another loss.
    await db.domain.update({ where: { id }, data: { nextCheckAt: new Date() } })
    await markEnded(db, config, id, { observed, reason: 'The 30 days are over.' })
    expect(await subjectsTo(owner.email)).toHaveLength(1)
  })

  test('a certificate cannot be renewed: as its end comes near, with the days that are left, and when it has expired', async () => {
    const owner = await newOwner()
    const { db, config } = world.api
    const name = `failing-${made}.com`
    const id = await newDomain(owner, name)
    const certificateId = newId('crt')
    const row = { names: [name], chain: '', key: Uint8Array.of(1), issuer: 'CN=X', serial: '1', directory: '' }
    const now = Date.now()
    const lifetime = (daysLeft: number) => {
      const notAfter = new Date(now + daysLeft * dayMs + 3_600_000)
      return { notAfter, notBefore: new Date(notAfter.getTime() - 90 * dayMs), renewAt: new Date(now) }
    }
    await db.certificate.create({ data: { id: certificateId, ...row, ...lifetime(29) } })
    await db.domain.update({ where: { id }, data: { verified: true, ssl: 'ACTIVE', certificateId } })
    const managed = domainCertificate(db, config, id)
    const fail = async (daysLeft: number) => {
      const times = lifetime(daysLeft)
      await db.certificate.update({ where: { id: certificateId }, data: times })
      const summary = { issuer: 'CN=X', serial: '1', sans: [name], lastError: null, nextAttemptAt: null }
      const shown = { notBefore: times.notBefore.toISOString(), notAfter: times.notAfter.toISOString() }
      await db.domain.update({ where: { id }, data: { certificate: { ...summary, ...shown } } })
      const { holders } = (await managed.find())!
      await managed.fail(holders, null, {
        message: 'CAA forbids it.',
        keepsOrder: false,
        nextAttemptAt: () => new Date(now + dayMs),
      })
      await world.idle()
    }
    await fail(29)
    expect(await subjectsTo(owner.email)).toEqual([])
    await fail(14)
    await fail(14)
    const [mail, ...others] = await mailsTo(owner.email)
    expect(others).toEqual([])
    expect(mail!.subject).toBe(`The certificate of ${name} cannot be renewed: 14 days left`)
    expect(mail!.text).toContain('Last error: CAA forbids it.')
    await db.certificate.update({ where: { id: certificateId }, data: lifetime(-1) })
    await managed.expire()
    expect((await subjectsTo(owner.email)).slice(1)).toEqual([`The certificate of ${name} has expired`])
  })

  test('a token is made: to all who see tokens, and to who made it', async () => {
    const owner = await newOwner()
    const body = { name: 'deploy\r\nBcc: eve@example.com', scopes: ['deployments:write'] }
    const refused = await world.api.call('POST', '/tokens', { token: owner.token, body })
    const name = refused.status === 201 ? body.name : 'deploy'
    if (refused.status !== 201) await world.api.call('POST', '/tokens', { token: owner.token, body: { ...body, name } })
    const [mail, ...others] = await mailsTo(owner.email)
    expect(others).toEqual([])
    expect(mail!.subject).toMatch(/^A new token was created: deploy/)
    expect(mail!.text).toContain('Scopes: deployments:write')
    expect(mail!.headers).not.toHaveProperty('bcc')
  })

  test('somebody signs in: once, however many accounts the person is in, with where from', async () => {
    const { db } = world.api
    const owner = await newOwner()
    const other = await world.api.newAccount()
    const user = await db.user.findUniqueOrThrow({ where: { id: owner.userId } })
    await addMember(db, { accountId: other.accountId, user, role: 'viewer', projectIds: [] })
    const from = { userAgent: 'Mozilla/5.0 <script>', address: '192.0.2.7' }
    await openSession(db, { userId: user.id, method: 'passkey', ...from })
    const [mail, ...others] = await mailsTo(owner.email)
    expect(others).toEqual([])
    expect(mail!.subject).toBe('New sign-in to your Berth account')
    expect(mail!.text).toContain('How: passkey\nFrom: 192.0.2.7\nBrowser: Mozilla/5.0 <script>')
    expect(mail!.html).toContain('Mozilla/5.0 &lt;script&gt;')
    const colleague = await world.join(owner.accountId)
    await openSession(db, { userId: user.id, method: 'passkey', ...from })
    expect(await subjectsTo(colleague.email)).toEqual([])
  })

  test('a webhook is disabled, without its path, which may be a secret', async () => {
    const owner = await newOwner()
    const body = { url: 'https://hooks.example.com/services/s3cret?key=1', events: ['*'] }
    const { id } = (await world.api.call('POST', '/webhooks', { token: owner.token, body })).body
    expect(await disableWebhook(world.api.db, id)).toBe(true)
    const [mail, ...others] = await mailsTo(owner.email)
    expect(others).toEqual([])
    expect(mail!.subject).toBe('The webhook to https://hooks.example.com was disabled')
    expect(mail!.raw).not.toContain('s3cret')
  })
})

describe('an invitation', () => {
  const invite = async ({ token }: { token: string }, email: string): Promise<string> => {
    const made = await world.api.call('POST', '/members/invitations', { token, body: { email, role: 'viewer' } })
    expect(made.status, made.text).toBe(201)
    return made.body.id
  }
  const codeIn = (mail: Received) => /\/setup#([\w-]{43})\n/.exec(mail.text)![1]!
  const from = { userAgent: '', address: '127.0.0.1' }

  test('comes with a link that works once, and whose secret is stored nowhere', async () => {
    const owner = await newOwner()
    const { name: account } = await world.api.db.account.findUniqueOrThrow({ where: { id: owner.accountId } })
    const { browser, user } = await newPerson(world.api, { accountId: owner.accountId })
    await world.api.db.user.update({ where: { id: user.id }, data: { name: 'Ada <b>' } })
    await invite({ token: await browser.token() }, 'guest@example.com')
    const [mail, ...others] = await mailsTo('guest@example.com')
    expect(others).toEqual([])
    expect(mail!.subject).toBe(`Ada <b> invites you to ${account}`)
    expect(mail!.html).toContain(`Ada &lt;b&gt; invites you to the account “${account}”`)
    expect(mail!.headers).not.toHaveProperty('list-unsubscribe')
    const code = codeIn(mail!)
    const tables = [
      await world.api.db.event.findMany(),
      await world.api.db.job.findMany(),
      await world.api.db.mail.findMany(),
    ]
    const stored = JSON.stringify(tables, (_, value) => (typeof value === 'bigint' ? String(value) : value))
    expect(stored).toContain('guest@example.com')
    expect(stored).not.toContain(code)
    const opened = await redeemCode(world.api.db, { code, signedInAs: null, from })
    expect(opened.session.user).toMatchObject({ email: 'guest@example.com', emailProvedAt: expect.any(Date) })
    const again = redeemCode(world.api.db, { code, signedInAs: null, from })
    await expect(again).rejects.toMatchObject({ code: 'link_not_valid' })
  })

  test('is mailed three times a day to one address, and twenty times an hour for one account', async () => {
    const owner = await newOwner()
    for (const count of [1, 2, 3, 3, 3]) {
      await invite(owner, 'often@example.com')
      expect(await subjectsTo('often@example.com')).toHaveLength(count)
    }
    for (let n = 0; n < 20; n++) await invite(owner, `guest-${n}@elsewhere.example`)
    await world.idle()
    expect(world.mailbox.mails.filter(({ to }) => to[0]!.endsWith('@elsewhere.example'))).toHaveLength(17)
    const reasons = await world.api.db.mail.findMany({ where: { accountId: owner.accountId, state: 'DROPPED' } })
    expect(new Set(reasons.map(({ reason }) => reason))).toEqual(
      new Set(['the address got too many within a day', 'the account sent too many within an hour']),
    )
  })

  test('that ends before its mail is sent is not mailed', async () => {
    const owner = await newOwner()
    world.mailbox.onRecipient = () => Promise.reject(new Refusal(451, 'not now'))
    const recipient = 'late@example.com'
    const id = await invite(owner, recipient)
    await until(async () => (await world.api.db.mail.findFirst({ where: { recipient } }))?.reason)
    // The mail says so before its job does, which would be put off once more.
    await until(() => world.api.db.job.findFirst({ where: { kind: 'mail', failures: { gt: 0 }, lockedBy: null } }))
    world.mailbox.onRecipient = async () => {}
    await world.api.db.invitation.update({ where: { id }, data: { expiresAt: new Date(0) } })
    await world.api.db.job.updateMany({ where: { kind: 'mail', failedAt: null }, data: { runAt: new Date() } })
    expect(await subjectsTo('late@example.com')).toEqual([])
    const row = await world.api.db.mail.findFirstOrThrow({ where: { recipient } })
    expect(row).toMatchObject({ state: 'DROPPED', reason: 'the invitation was accepted or deleted, or has expired' })
  })
})

describe('a mail goes to', () => {
  test('members who may see what it is about, and nobody else', async () => {
    const owner = await newOwner()
    const stranger = await world.account()
    const { id: otherProject } = await world.api.newProject(`other-${made}`, { token: owner.token })
    const join = (role: 'admin' | 'developer' | 'viewer', projectIds: string[] = []) =>
      world.join(owner.accountId, { role, projectIds })
    const admin = await join('admin')
    const developer = await join('developer', [owner.projectId])
    const elsewhere = await join('developer', [otherProject])
    const viewer = await join('viewer')
    const gone = await join('viewer')
    const { tokenId } = await world.api.db.membership.findFirstOrThrow({ where: { userId: gone.userId } })
    await world.api.db.token.update({ where: { id: tokenId }, data: { revokedAt: new Date() } })
    await deploy(owner, failed)
    await world.api.call('POST', '/tokens', { token: owner.token, body: { name: 'x', scopes: ['events:read'] } })
    await world.idle()
    const count = ({ email }: { email: string }) => world.mailbox.to(email).length
    // The token belongs to the account, which those who are narrowed to projects do not see.
    expect([owner, admin, viewer].map(count)).toEqual([2, 2, 2])
    expect([developer, elsewhere, gone, stranger].map(count)).toEqual([1, 0, 0, 0])
  })

  test('who made a token, even if they are narrowed to a project', async () => {
    const owner = await newOwner()
    const developer = await world.join(owner.accountId, { role: 'developer', projectIds: [owner.projectId] })
    const data = { id: 'tok_x', name: 'mine', scopes: ['events:read'], projects: null, expiresAt: null }
    await world.emit(owner.accountId, { type: 'token.created', actor: developer.userId, data })
    expect(await subjectsTo(developer.email)).toEqual(['A new token was created: mine'])
    expect((await mailsTo(owner.email))[0]!.text).toContain(`Created by: ${developer.email.split('@')[0]}`)
  })
})

test('the trigger knows the events that mails come from', async () => {
  const [row] = await world.api.db.$queryRaw<{ text: string }[]>`
    SELECT pg_get_triggerdef(oid) AS text FROM pg_trigger WHERE tgname = 'event_mail' AND tgparentid = 0`
  const types = [...row!.text.matchAll(/'([a-z._]+)'::text/g)].map(([, type]) => type)
  expect(types.sort()).toEqual(Object.keys(mailEvents).sort())
})

test('every kind comes from an event', () => {
  expect(new Set(Object.values(mailEvents))).toEqual(new Set([...mailKindNames, 'invitation', 'address']))
})
