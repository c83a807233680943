import { afterEach, expect, test, vi } from 'vitest'
import { testMail } from '../../src/commands/mail.ts'
import { loadConfig } from '../../src/config.ts'
import { Refusal, startMailbox } from '../engines/mail/mailbox.ts'

afterEach(() => vi.restoreAllMocks())

test('a mail is sent to try the server by, and what the server refuses is said in its words', async () => {
  const mailbox = await startMailbox()
  const printed: string[] = []
  vi.spyOn(console, 'log').mockImplementation((line: string) => void printed.push(line))
  try {
    const config = loadConfig({ SMTP_URL: mailbox.url, MAIL_FROM: 'Berth <berth@mail.example>' })
    await testMail(config, 'ada@example.com')
    expect(printed.join()).toContain('accepted an email from berth@mail.example to ada@example.com')
    const [mail] = mailbox.to('ada@example.com')
    expect(mail).toMatchObject({ from: 'berth@mail.example', subject: 'A test of emails from Berth' })
    expect(mail!.text).toContain(config.baseUrl)
    mailbox.onRecipient = async () => {
      throw new Refusal(550, 'no such user here')
    }
    await expect(testMail(config, 'nobody@example.com')).rejects.toThrow('no such user here')
    await expect(testMail(config, 'a\r\nRCPT TO:<b@c>')).rejects.toThrow('is not an email address')
    await expect(testMail(loadConfig({}), 'ada@example.com')).rejects.toThrow('SMTP_URL is not set')
    expect(mailbox.mails).toHaveLength(1)
  } finally {
    await mailbox.close()
  }
})
