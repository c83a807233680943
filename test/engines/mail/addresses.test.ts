import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { proveAddress } from '../../../src/services/people/address-proofs.ts'
import { addMember } from '../../../src/services/people/memberships.ts'
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
const subjectsTo = async (address: string) => (await mailsTo(address)).map(({ subject }) => subject)

describe('an address that is not proved', () => {
  const proofOf = (text: string) => /\/me\?proof=([\w-]{43})$/m.exec(text)?.[1]

  test('gets one mail, which proves it, and no others before that', async () => {
    const owner = await world.account()
    const { db, deps } = world.api
    const user = await changeUser(db, owner.userId, { email: `new-${owner.email}` })
    await world.emit(owner.accountId, { type: 'session.created', actor: user.id, data: { id: 'ses_x' } })
    expect(await subjectsTo(user.email)).toEqual(['Is this your address?'])
    expect(await subjectsTo(owner.email)).toEqual([])
    const [mail] = await mailsTo(user.email)
    expect(mail!.headers['list-unsubscribe']).toBeUndefined()
    await proveAddress(db, deps.vault, user, proofOf(mail!.text)!)
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
    await changeUser(db, owner.userId, { email })
    expect(await subjectsTo(email)).toHaveLength(1)
    // Another name is no news, and a role is somebody else's doing.
    await changeUser(db, owner.userId, { name: 'Ada' })
    await world.emit(owner.accountId, { type: 'member.updated', subject: known.id, data: { email, name: 'Ada' } })
    expect(await subjectsTo(email)).toHaveLength(1)
    for (let count = 0; count < 4; count++) await changeUser(db, owner.userId, { email })
    expect(await subjectsTo(email)).toHaveLength(3)
  })
})
