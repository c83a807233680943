// The person's own page: a password, one-time passwords, passkeys, mails, and the proof of the address.
import * as OTPAuth from 'otpauth'
import { expect, test } from 'vitest'
import { emailVerificationCode } from '../../src/services/people/sign-in/email-verification.ts'
import { until } from '../helpers/until.ts'
import { addDevice, button, describeConsole, show, violations } from './browser.ts'
import { hostile as markup } from './screens.ts'

// There is a mail server as far as settings go; no worker sends anything.
describeConsole('the console', { SMTP_URL: 'smtp://localhost:1' }, (console) => {
  test('sets up a password and one-time passwords, and signs in by them', async () => {
    const person = await console.signIn({ role: 'developer', email: 'totp@example.com' })
    const { page } = person
    await show(page, `${console.url}/me`)
    await button(page, 'Set a password').click()
    await page.getByLabel('New password').fill('a quiet harbour at dawn')
    await button(page, 'Set the password').click()
    await button(page, 'Change the password').waitFor()
    await button(page, 'Set up').click()
    await button(page, 'Continue').click()
    await page.getByRole('img', { name: 'QR code for the app' }).waitFor()
    const secret = (await page.getByRole('dialog').locator('.copy code').textContent())!
    const totp = new OTPAuth.TOTP({ secret: OTPAuth.Secret.fromBase32(secret) })
    await page.getByLabel('Code from the app').fill(totp.generate())
    await button(page, 'Turn on').click()
    await button(page, 'I saved them').waitFor()
    const codes = await page.locator('.codes code').allTextContents()
    expect(codes).toHaveLength(10)
    expect(await violations(page)).toEqual([])
    await button(page, 'I saved them').click()
    await page.getByText('Recovery codes left: 10').waitFor()

    await button(page, 'Sign out').last().click()
    const password = page.getByLabel('Password', { exact: true })
    await page.getByLabel('Email', { exact: true }).fill('totp@example.com')
    await password.fill('a loud harbour at noon')
    await button(page, 'Sign in with a password').click()
    await page.getByRole('alert').waitFor()
    await password.fill('a quiet harbour at dawn')
    await button(page, 'Sign in with a password').click()
    const code = page.getByLabel('Code', { exact: true }).and(page.getByRole('textbox'))
    await code.fill('000000')
    await button(page, 'Continue').click()
    await page.getByRole('alert').waitFor()
    // The code of this half-minute was used: a recovery code stands in for it.
    await code.fill(codes[0]!)
    await button(page, 'Continue').click()
    await page.locator('nav .foot', { hasText: /totp@example\.com.*developer/ }).waitFor()
    await show(page, `${console.url}/me`)
    await page.getByText('Recovery codes left: 9').waitFor()
    expect(await page.getByText('This browser').count()).toBe(1)
    await person.context.close()
  })

  test('adds a passkey, chooses which mails come, and proves the address', async () => {
    const person = await console.signIn({ role: 'developer', email: 'mails@example.com' })
    const { page } = person
    const { db, deps } = console.api
    const user = () => db.user.findUniqueOrThrow({ where: { email: 'mails@example.com' } })
    await addDevice(person)
    await show(page, `${console.url}/me`)
    await button(page, 'Add a passkey').click()
    await page.getByRole('dialog').getByLabel('Name').fill(markup)
    await button(page, 'Continue').click()
    await page.getByRole('cell', { name: markup, exact: true }).waitFor()
    // The device has one already, and says so.
    await button(page, 'Add a passkey').click()
    await button(page, 'Continue').click()
    await page.getByRole('dialog').getByRole('alert').waitFor()
    await button(page, 'Cancel').click()
    await button(page, `Rename ${markup}`).click()
    await page.getByRole('dialog').getByLabel('Name').fill('Laptop')
    await button(page, 'Rename').click()
    await page.getByRole('cell', { name: 'Laptop', exact: true }).waitFor()

    await page.getByLabel('Support answered a ticket').uncheck()
    await until(async () => String((await user()).mutedMails) === 'ticket-reply')
    await show(page, `${console.url}/me`)
    expect(await page.getByLabel('Support answered a ticket').isChecked()).toBe(false)
    await page.getByLabel('Support answered a ticket').check()
    await until(async () => (await user()).mutedMails.length === 0)

    await page.getByText('Not verified').waitFor()
    expect(await violations(page)).toEqual([])
    await button(page, 'Send again').click()
    await page.getByText('Sent, unless the address').waitFor()
    await show(page, `${console.url}/me?proof=${emailVerificationCode(deps.vault, await user())}`)
    await page.getByText('Not verified').waitFor({ state: 'detached' })
    expect((await user()).emailProvedAt).not.toBeNull()
    expect(page.url()).toBe(`${console.url}/me`)

    await button(page, 'Remove Laptop').click()
    await button(page, 'Remove the passkey').click()
    // The only way in that is left.
    await page.getByRole('dialog').getByRole('alert').waitFor()
    await person.context.close()
  })
})
