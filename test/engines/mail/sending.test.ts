import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer, type Server, type Socket } from 'node:net'
import { Registry } from 'prom-client'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { loadConfig } from '../../../src/config.ts'
import { createMailHandlers, mailRetryTable } from '../../../src/engines/mail/handlers.ts'
import { createMailTransport, MailFailure } from '../../../src/engines/mail/transport.ts'
import { startWorker } from '../../../src/jobs/worker.ts'
import { requeueJob } from '../../../src/services/jobs/statements.ts'
import { maxAgeMs, maxPerHour, setMailEnabled } from '../../../src/services/mail/outbox.ts'
import { until } from '../../helpers/until.ts'
import { Refusal, startMailbox } from './mailbox.ts'
import { type MailWorld, startMailWorld } from './world.ts'

let world: MailWorld
beforeAll(async () => {
  world = await startMailWorld()
})
afterAll(() => world.stop())
afterEach(() => {
  world.mailbox.onRecipient = async () => {}
  world.mailbox.onMail = async () => {}
})

const token = (name: string) => ({ id: 'tok_x', name, scopes: ['events:read'], projects: null, expiresAt: null })
const newToken = (accountId: string, name = 'one') =>
  world.emit(accountId, { type: 'token.created', data: token(name) })
const rowsOf = (recipient: string) => world.api.db.mail.findMany({ where: { recipient }, orderBy: { about: 'asc' } })
/** The time of the next attempt has come. */
const soon = () =>
  world.api.db.job.updateMany({ where: { kind: 'mail', failedAt: null, lockedBy: null }, data: { runAt: new Date() } })

describe('a mail', () => {
  test('has both texts and the headers that programs look at', async () => {
    const { accountId, email, userId } = await world.account()
    const worker = world.work()
    const eventId = await newToken(accountId)
    await world.idle()
    await worker.stop()
    const [mail] = world.mailbox.to(email)
    expect(mail).toMatchObject({ from: 'berth@mail.example', to: [email] })
    expect(mail!.headers).toMatchObject({
      from: 'Berth <berth@mail.example>',
      to: email,
      'message-id': `<${eventId}.${userId}@mail.example>`,
      'auto-submitted': 'auto-generated',
      'list-unsubscribe-post': 'List-Unsubscribe=One-Click',
    })
    expect(mail!.headers['content-type']).toMatch(/^multipart\/alternative/)
    const link = /^<(http:\/\/localhost:3000\/mail\/unsubscribe\?[^>]+)>$/.exec(mail!.headers['list-unsubscribe']!)![1]!
    expect(mail!.text).toContain(link)
    expect(mail!.html).toContain(link.replaceAll('&', '&amp;'))
    expect(await rowsOf(userId)).toMatchObject([{ state: 'SENT', reason: null }])
  })

  test('cannot be given more headers or recipients by any text of others', async () => {
    const bad = 'x\r\nBcc: eve@example.com\n\n<script>alert(1)</script>\u202e\u2028"; é 漢'
    const { accountId, userId } = await world.account()
    // No route takes such an address; whatever came into the row, it is one address or none.
    const addresses = [
      'a@example.com, eve@example.com',
      'a@example.com\r\nRCPT TO:<eve@example.com>',
      'Eve <eve@example.com>',
    ]
    const worker = world.work({ retryDelaysMs: [] })
    for (const address of addresses) {
      await world.api.db.user.update({ where: { id: userId }, data: { email: address } })
      await newToken(accountId, bad)
      await world.idle()
    }
    await world.api.db.user.update({ where: { id: userId }, data: { email: 'ünï"cøde@example.com' } })
    await newToken(accountId, bad)
    await world.idle()
    const plain = 'plain@example.com'
    await world.api.db.user.update({ where: { id: userId }, data: { email: plain } })
    await newToken(accountId, bad)
    await world.idle()
    await worker.stop()
    const got = world.mailbox.mails.filter(({ subject }) => subject.includes('漢'))
    expect(got.flatMap(({ to }) => to)).not.toContain('eve@example.com')
    expect(got.every(({ to, headers }) => to.length === 1 && !('bcc' in headers))).toBe(true)
    const [mail] = world.mailbox.to(plain)
    expect(mail!.subject).toBe('A new token was created: x Bcc: eve@example.com <script>alert(1)</script> "; é 漢')
    expect(mail!.html).not.toContain('<script>')
    expect(mail!.text).not.toMatch(/[\u202e\u2028]/)
  })

  test('is one of ten in an hour; what is more is told as a number, by the next one', async () => {
    const { accountId, email, userId } = await world.account()
    const [before, after] = [3, 5]
    const worker = world.work()
    for (let n = 0; n < maxPerHour + before; n++) {
      await newToken(accountId)
      await world.idle()
    }
    expect(world.mailbox.to(email)).toHaveLength(maxPerHour)
    const [held, ...others] = (await rowsOf(userId)).filter(({ state }) => state === 'WAITING')
    expect(others).toEqual([])
    expect(held).toMatchObject({ more: before - 1 })
    expect(held!.dueAt.getTime()).toBeGreaterThan(Date.now() + 3_000_000)
    // Of many at once none is forgotten.
    await Promise.all(Array.from({ length: after }, () => newToken(accountId)))
    await world.idle()
    // The hour is over.
    await world.api.db.mail.updateMany({ where: { recipient: userId }, data: { dueAt: new Date() } })
    await soon()
    await world.idle()
    await worker.stop()
    expect(world.mailbox.to(email)).toHaveLength(maxPerHour + 1)
    expect(world.mailbox.to(email).at(-1)!.text).toContain(`And ${before - 1 + after} more of this kind`)
    expect(await rowsOf(userId)).toHaveLength(maxPerHour + 1)
  })

  test('is queued once, however often its event is looked at', async () => {
    const { accountId, email } = await world.account()
    const eventId = await newToken(accountId)
    const { notify } = createMailHandlers(world.api.deps)
    const job = { attempt: 1, signal: new AbortController().signal, async requireHeld() {} }
    await Promise.all([1, 2, 3].map(() => notify.run({ eventId }, job)))
    const worker = world.work()
    await world.idle()
    await notify.run({ eventId }, job)
    await world.idle()
    await worker.stop()
    expect(world.mailbox.to(email)).toHaveLength(1)
  })

  test('is not sent after its kind was muted, or the person has left', async () => {
    const { accountId } = await world.account()
    const muted = await world.join(accountId)
    const left = await world.join(accountId)
    world.mailbox.onRecipient = () => Promise.reject(new Refusal(451, 'not now'))
    const worker = world.work()
    await newToken(accountId)
    await until(async () => (await rowsOf(left.userId))[0]?.reason && (await rowsOf(muted.userId))[0]?.reason)
    await world.api.db.user.update({ where: { id: muted.userId }, data: { mutedMails: ['new-token'] } })
    await world.api.db.membership.deleteMany({ where: { userId: left.userId } })
    world.mailbox.onRecipient = async () => {}
    await soon()
    await world.idle()
    await newToken(accountId)
    await world.idle()
    await worker.stop()
    for (const { email, userId } of [muted, left]) {
      expect(world.mailbox.to(email)).toEqual([])
      expect(await rowsOf(userId)).toMatchObject([{ state: 'DROPPED' }])
    }
  })

  test('that could not be sent within a day is dropped', async () => {
    const { accountId, email, userId } = await world.account()
    const eventId = await newToken(accountId)
    const data = { recipient: userId, about: eventId, eventId, accountId, kind: 'new-token', state: 'WAITING' }
    await world.api.db.mail.create({ data: { ...data, dueAt: new Date(Date.now() - maxAgeMs - 1000) } })
    const handlers = createMailHandlers(world.api.deps)
    await handlers.mail.run(
      { recipient: userId, about: eventId },
      { attempt: 1, signal: new AbortController().signal, async requireHeld() {} },
    )
    expect(await rowsOf(userId)).toMatchObject([{ state: 'DROPPED', reason: 'it could not be sent within a day' }])
    expect(world.mailbox.to(email)).toEqual([])
    await world.api.db.job.deleteMany()
  })
})

describe('a mail server', () => {
  test('that is busy is asked again; one that refuses the address is not', async () => {
    const { accountId, email, userId } = await world.account()
    let busy = 2
    world.mailbox.onRecipient = async () => {
      if (busy-- > 0) throw new Refusal(451, 'come back')
    }
    expect(mailRetryTable.reduce((sum, ms) => sum + ms, 0)).toBeLessThan(maxAgeMs)
    const worker = world.work()
    await newToken(accountId)
    await until(async () => (await soon()) && world.mailbox.to(email).length === 1)
    await world.idle()
    world.mailbox.onRecipient = () => Promise.reject(new Refusal(550, 'no such person'))
    await newToken(accountId)
    await until(async () => (await rowsOf(userId)).at(-1)?.state === 'FAILED')
    expect((await rowsOf(userId)).at(-1)).toMatchObject({ reason: 'the mail server refused it: 550 no such person' })
    await worker.stop()
  })

  test('that never takes a mail is given up, which is recorded and counted', async () => {
    const { accountId, userId } = await world.account()
    world.mailbox.onRecipient = () => Promise.reject(new Refusal(451, 'never'))
    const registry = new Registry()
    const { db, notifications, log } = world.api.deps
    const handlers = createMailHandlers({ ...world.api.deps, registry }, { retryDelaysMs: [60_000, 60_000] })
    const worker = startWorker(db, notifications, log, handlers)
    await newToken(accountId)
    await until(async () => (await soon()) && (await rowsOf(userId))[0]?.state === 'FAILED')
    expect(await rowsOf(userId)).toMatchObject([{ reason: 'the mail server refused it: 451 never' }])
    expect(await registry.metrics()).toContain('berth_mails_total{outcome="failed"} 1')
    expect(await registry.metrics()).toContain('berth_mails_waiting 0')
    // The operator queues it again once the server is mended.
    world.mailbox.onRecipient = async () => {}
    const { id } = await until(() => db.job.findFirst({ where: { kind: 'mail', failedAt: { not: null } } }))
    await requeueJob(db, { id: String(id) })
    await until(async () => (await rowsOf(userId))[0]?.state === 'SENT')
    await worker.stop()
  })

  test('that hangs holds up neither other jobs nor the stop of the worker', async () => {
    const { accountId, email } = await world.account()
    const hung = Promise.withResolvers<void>()
    world.mailbox.onMail = () => hung.promise
    const reaped: string[][] = []
    const reap = {
      concurrency: 1,
      retryDelaysMs: [],
      run: async ({ deploymentIds }: { deploymentIds: string[] }) => void reaped.push(deploymentIds),
      giveUp: async () => {},
    }
    const worker = world.work({ graceMs: 50 }, { reap })
    const begun = world.mailbox.begun
    for (let n = 0; n < 6; n++) await newToken(accountId)
    // All places for mails are taken.
    await until(() => world.mailbox.begun === begun + 4)
    await world.api.db.job.create({ data: { kind: 'reap', key: 'x', payload: { deploymentIds: ['dpl_x'] } } })
    await until(() => reaped.length === 1)
    await worker.stop()
    hung.resolve()
    world.mailbox.onMail = async () => {}
    const next = world.work()
    await world.idle()
    await next.stop()
    const ids = world.mailbox.to(email).map(({ headers }) => headers['message-id'])
    expect(new Set(ids).size).toBe(6)
  })

  test('that is not there writes nothing', async () => {
    const { accountId } = await world.account()
    await setMailEnabled(world.api.db, false)
    await newToken(accountId)
    expect(await world.api.db.job.count({ where: { kind: { in: ['notify', 'mail'] }, failedAt: null } })).toBe(0)
    const { mail, notify } = createMailHandlers({ ...world.api.deps, config: { ...world.api.config, mail: null } })
    expect([mail.concurrency, notify.concurrency]).toEqual([0, 0])
    await setMailEnabled(world.api.db, true)
    await newToken(accountId)
    const waiting = { kind: 'notify', failedAt: null }
    expect(await world.api.db.job.count({ where: waiting })).toBe(1)
    // Turned off again, what waits is dropped.
    await setMailEnabled(world.api.db, false)
    expect(await world.api.db.job.count({ where: waiting })).toBe(0)
    await setMailEnabled(world.api.db, true)
  })
})

describe('the transport', () => {
  const servers: Server[] = []
  const sockets: Socket[] = []
  afterAll(() => {
    for (const socket of sockets) socket.destroy()
    for (const server of servers) server.close()
  })

  async function serve(talk: (socket: Socket) => void): Promise<string> {
    const server = createServer((socket) => {
      sockets.push(socket)
      socket.on('error', () => {})
      talk(socket)
    })
    servers.push(server)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return `127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  const message = { to: { name: '', address: 'a@example.com' }, subject: 's', text: 't' }
  function send(url: string, options = {}): Promise<unknown> {
    const server = loadConfig({ SMTP_URL: url }).mail!
    return createMailTransport(server, options)
      .send(message, new AbortController().signal)
      .then(
        () => null,
        (error) => error,
      )
  }

  test('ends with a server that says nothing, or a byte now and then, or the same for ever', async () => {
    const dripping = (socket: Socket) => {
      const timer = setInterval(() => socket.write('220-wait\r\n'), 5)
      socket.on('close', () => clearInterval(timer))
    }
    const talks = [
      () => {},
      dripping,
      (socket: Socket) => void socket.end('garbage\r\n'),
      (socket: Socket) => socket.destroy(),
    ]
    for (const talk of talks) {
      const error = await send(`smtp://${await serve(talk)}`, { timeoutMs: 200 })
      expect(error).toBeInstanceOf(MailFailure)
      expect((error as MailFailure).final).toBe(false)
    }
  })

  test('believes no certificate that nobody has signed, by TLS from the first byte or by STARTTLS', async () => {
    const secure = await startMailbox({ secure: true })
    const starting = await startMailbox({ hideSTARTTLS: false })
    const elsewhere = { ...loadConfig({ SMTP_URL: starting.url }).mail!, host: '::ffff:127.0.0.1' }
    const never = new AbortController().signal
    const sent = [
      send(secure.url.replace('smtp:', 'smtps:')),
      createMailTransport(elsewhere)
        .send(message, never)
        .catch((error) => error),
    ]
    for (const error of await Promise.all(sent)) {
      expect(error).toBeInstanceOf(MailFailure)
      expect((error as MailFailure).message).toMatch(/certificate/)
    }
    expect([...secure.mails, ...starting.mails]).toEqual([])
    await Promise.all([secure.close(), starting.close()])
  })

  test('shows no password, not even when the server repeats it', async () => {
    const url = await serve((socket) => {
      socket.write('220 hello\r\n')
      socket.on('data', (chunk) => {
        const line = chunk.toString().trim()
        if (/^EHLO/.test(line)) socket.write('250-hello\r\n250 AUTH PLAIN\r\n')
        else socket.write(`535 not ${line} nor s3cret/pass\r\n`)
      })
    })
    const error = (await send(`smtp://ada:s3cret%2Fpass@${url}`)) as MailFailure
    expect(error).toBeInstanceOf(MailFailure)
    expect(error.message).toContain('the mail server refused it: 535 not AUTH PLAIN')
    const shown = JSON.stringify([error.message, error.stack, error.cause ?? null])
    for (const text of ['s3cret', Buffer.from('\0ada\0s3cret/pass').toString('base64')])
      expect(shown).not.toContain(text)
  })

  test('sends a password to another machine only by TLS', async () => {
    const { auth, host } = loadConfig({ SMTP_URL: 'smtp://a:b@mail.example' }).mail!
    expect([auth, host]).toEqual([{ user: 'a', pass: 'b' }, 'mail.example'])
    const seen: string[] = []
    const url = await serve((socket) => {
      socket.write('220 hello\r\n')
      socket.on('data', (chunk) => {
        seen.push(chunk.toString())
        socket.write('250-hello\r\n250 AUTH PLAIN\r\n')
      })
    })
    // By another name of this machine that does not count as local.
    const server = { ...loadConfig({ SMTP_URL: `smtp://ada:s3cret@${url}` }).mail!, host: '::ffff:127.0.0.1' }
    const sent = createMailTransport(server, { timeoutMs: 2000 }).send(message, new AbortController().signal)
    await expect(sent).rejects.toBeInstanceOf(MailFailure)
    expect(seen.join('')).not.toContain('AUTH')
  })
})
