// A worker that is killed after the mail server took a mail, and before it could record that.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { until } from '../../helpers/until.ts'
import { type MailWorld, startMailWorld } from './world.ts'

let world: MailWorld
beforeAll(async () => {
  world = await startMailWorld()
})
afterAll(() => world.stop())

const rowsOf = (recipient: string) => world.api.db.mail.findMany({ where: { recipient }, orderBy: { about: 'asc' } })

test('a mail server gets a mail again with the same Message-ID and the same words when the worker was killed before it knew', async () => {
  const { accountId, email, userId } = await world.account()
  const eventId = await world.emit(accountId, {
    type: 'token.created',
    data: { id: 'tok_x', name: 'one', scopes: ['events:read'], projects: null, expiresAt: null },
  })
  const path = join(import.meta.dirname, 'worker-process.ts')
  const args = [world.api.databaseUrl, world.mailbox.url]
  const child = fork(path, args, { stdio: 'ignore' })
  const exited = once(child, 'exit')
  world.mailbox.onMail = async () => {
    child.kill('SIGKILL')
    await exited
  }
  await exited
  await until(() => world.mailbox.to(email).length === 1)
  world.mailbox.onMail = async () => {}
  expect(await rowsOf(userId)).toMatchObject([{ state: 'WAITING' }])
  // The lease of the dead worker ends.
  await world.api.db.job.updateMany({ where: { lockedBy: { not: null } }, data: { lockedUntil: new Date(0) } })
  const worker = world.work()
  await until(async () => (await rowsOf(userId))[0]?.state === 'SENT')
  await world.idle()
  await worker.stop()
  const [first, second, ...others] = world.mailbox.to(email)
  expect(others).toEqual([])
  expect(second!.headers['message-id']).toBe(`<${eventId}.${userId}@mail.example>`)
  for (const part of ['text', 'html', 'subject'] as const) expect(second![part]).toBe(first![part])
  expect(second!.headers['message-id']).toBe(first!.headers['message-id'])
})
