import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newId } from '../../../src/platform/ids.ts'
import { addMember } from '../../../src/services/people/memberships.ts'
import { verifyEmail } from '../../../src/services/people/sign-in/email-verification.ts'
import { changeUser } from '../../../src/services/people/users.ts'
import { type MailWorld, startMailWorld } from './world.ts'

let world: MailWorld
beforeAll(async () => {
  world = await startMailWorld()
  world.work()
})
afterAll(() => world.stop())

/** The mails that one address has, when nothing more is to be sent. */
async function mailsTo(address: string) {
  await world.idle()
  return world.mailbox.to(address)
}
/** A session that nobody is told of. */
function sessionOf(userId: string) {
  const now = new Date()
  const [id, hash, expiresAt] = [newId('ses'), Uint8Array.from(randomBytes(32)), new Date(now.getTime() + 60_000)]
  const seen = { method: 'link', userAgent: 'test', address: '127.0.0.1', createdAt: now, lastSeenAt: now }
  return world.api.db.session.create({ data: { id, hash, userId, expiresAt, ...seen } })
}

const subjectsTo = async (address: string) => (await mailsTo(address)).map(({ subject }) => subject)

describe('an address that is not proved', () => {
  const proofOf = (text: string) => /\/me\?proof=([\w-]{43})$/m.exec(text)?.[1]

  test('gets one mail, which proves it, and no others before that', async () => {
    const owner = await world.account()
    const { db, deps } = world.api
    const user = await changeUser(db, await sessionOf(owner.userId), { email: `new-${owner.email}` })
    await world.emit(owner.accountId, { type: 'session.created', actor: user.id, data: { id: 'ses_x' } })
    expect(await subjectsTo(user.email)).toEqual(['Is this your address?'])
    expect(await subjectsTo(owner.email)).toEqual([])
    const [mail] = await mailsTo(user.email)
    expect(mail!.headers['list-unsubscribe']).toBeUndefined()
    await verifyEmail(db, deps.vault, user, proofOf(mail!.text)!)
    await world.emit(owner.accountId, { type: 'session.created', actor: user.id, data: { id: 'ses_y' } })
    expect(await subjectsTo(user.email)).toEqual(['Is this your address?', 'New sign-in to your Berth account'])
  })

  test('gets it once, in however many accounts the person is, and three times a day at most', async () => {
    const owner = await world.account()
    const { db } = world.api
    const known = await db.user.findUniqueOrThrow({ where: { id: owner.userId } })
    const { accountId } = await world.api.newAccount()
    await db.$transaction((tx) => addMember(tx, { accountId, user: known, role: 'viewer', projectIds: [] }))
    const email = `new-${owner.email}`
    const session = await sessionOf(owner.userId)
    await changeUser(db, session, { email })
    expect(await subjectsTo(email)).toHaveLength(1)
    // Another name is no news, and a role is somebody else's doing.
    await changeUser(db, session, { name: 'Ada' })
    await world.emit(owner.accountId, { type: 'member.updated', subject: known.id, data: { email, name: 'Ada' } })
    expect(await subjectsTo(email)).toHaveLength(1)
    for (let count = 0; count < 4; count++) await changeUser(db, session, { email })
    expect(await subjectsTo(email)).toHaveLength(3)
  })
})
