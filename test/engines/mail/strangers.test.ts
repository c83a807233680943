// Mails to addresses that nobody has proved: a member may be a stranger whom somebody entered, and who never asked.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { mostUnproved } from '../../../src/services/mail/outbox.ts'
import { openBrowser } from '../../helpers/people.ts'
import { type MailWorld, startMailWorld } from './world.ts'

let world: MailWorld
beforeAll(async () => {
  world = await startMailWorld()
  world.work()
})
afterAll(() => world.stop())

const makeToken = (token: string, n: number) =>
  world.api.call('POST', '/tokens', { token, body: { name: `Buy at evil.example, number ${n}` } })

const sentTo = async (domain: string) => {
  await world.idle()
  return world.mailbox.mails.filter(({ to }) => to[0]!.endsWith(`@${domain}`))
}

test('a stranger in whose name an invitation was accepted gets few mails, and proved members all of them', async () => {
  const { token, email, accountId } = await world.account()
  const invited = await world.api.call('POST', '/members/invitations', {
    token,
    body: { email: 'victim@stranger.example', role: 'viewer' },
  })
  const browser = openBrowser(world.api)
  expect((await browser.ask('POST', '/setup', { code: invited.body.secret })).status).toBe(200)
  for (let n = 0; n < mostUnproved.perDay + 3; n++) await makeToken(token, n)
  const mails = await sentTo('stranger.example')
  expect(mails.filter(({ subject }) => subject.startsWith('A new token'))).toHaveLength(mostUnproved.perDay)
  // Of another kind there are still some.
  expect(mails.filter(({ subject }) => subject.startsWith('New sign-in'))).toHaveLength(1)
  expect(world.mailbox.to(email)).toHaveLength(mostUnproved.perDay + 3)
  expect(await world.api.db.mail.count({ where: { accountId, kind: 'new-token' } })).toBe(2 * mostUnproved.perDay + 3)
})

test('an account sends few mails in an hour to all strangers together', async () => {
  const { token, accountId, email } = await world.account()
  for (let n = 0; n < 8; n++) await world.join(accountId, { proved: false, email: `${n}@crowd.example` })
  for (let n = 0; n < 4; n++) await makeToken(token, n)
  expect(await sentTo('crowd.example')).toHaveLength(mostUnproved.perHourOfAccount)
  expect(world.mailbox.to(email)).toHaveLength(4)
})

test('who takes a stranger’s address as their own sends few mails there too', async () => {
  const { token, userId } = await world.account()
  await world.api.db.user.update({ where: { id: userId }, data: { email: 'me@taken.example', emailProvedAt: null } })
  for (let n = 0; n < mostUnproved.perDay + 2; n++) await makeToken(token, n)
  expect(await sentTo('taken.example')).toHaveLength(mostUnproved.perDay)
})
