// One mail to the mail server: bounded in time, on a connection of its own, with the reason where it failed.
import { Socket } from 'node:net'
import type { SendMailOptions } from 'nodemailer'
import type { Config } from '../../config.ts'

export type MailServer = NonNullable<Config['mail']>

export type Message = Pick<SendMailOptions, 'to' | 'subject' | 'text' | 'html' | 'messageId' | 'inReplyTo' | 'headers'>

export class MailFailure extends Error {
  /** Another attempt would end the same: the server will not take mail for this address. */
  readonly final: boolean

  constructor(reason: string, final = false) {
    super(reason)
    this.final = final
  }
}

export type TransportOptions = {
  /** From the connection to the server's word that it has the mail. */
  timeoutMs?: number
  /** For a mail that is under way when the process stops: cut off later, it would be sent twice. */
  graceMs?: number
}

export type Transport = { send(message: Message, signal: AbortSignal): Promise<void> }

const maxReason = 300

export function createMailTransport(server: MailServer, options: TransportOptions = {}): Transport {
  const { timeoutMs = 60_000, graceMs = 5_000 } = options
  const { host, port, secure, auth, from } = server
  const isLocal = /^(localhost|127\.[\d.]+|::1)$/.test(host)
  const hide = redaction(auth)
  const settings = {
    host,
    port,
    secure,
    ...(auth && { auth }),
    // A password never goes unencrypted to another machine; to this one nobody listens, and its certificate is often its own.
    ignoreTLS: isLocal,
    requireTLS: auth !== null && !isLocal,
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    dnsTimeout: timeoutMs,
    // A text is never taken for the name of a file or an address.
    disableFileAccess: true,
    disableUrlAccess: true,
  }

  return {
    async send(message, signal) {
      // Loaded with the first mail: 23 MB that an installation without a mail server does without.
      const { createTransport } = await import('nodemailer')
      // Its own socket, because the library's timeouts begin anew with every byte, and its sending cannot be ended.
      const socket = new Socket()
      const cut = new AbortController()
      cut.signal.addEventListener('abort', () => socket.destroy())
      socket.once('connect', () => cut.signal.aborted && socket.destroy())
      const late = setTimeout(() => cut.abort(`no end within ${timeoutMs / 1000} s`), timeoutMs)
      let grace: NodeJS.Timeout | undefined
      const stop = () => {
        grace = setTimeout(() => cut.abort('the worker stops'), graceMs)
      }
      signal.addEventListener('abort', stop, { once: true })
      try {
        const given = Promise.withResolvers<never>()
        cut.signal.addEventListener('abort', () => given.reject(new MailFailure(String(cut.signal.reason))))
        given.promise.catch(() => {})
        const transport = createTransport({ ...settings, socket })
        const sending = transport.sendMail({ ...message, from })
        sending.catch(() => {})
        await Promise.race([sending, given.promise])
      } catch (error) {
        throw error instanceof MailFailure ? error : failureOf(error as SmtpError, hide)
      } finally {
        clearTimeout(late)
        clearTimeout(grace)
        signal.removeEventListener('abort', stop)
        socket.destroySoon()
      }
    },
  }
}

type SmtpError = Error & { code?: string; command?: string; responseCode?: number; response?: string }

/** The server's own words, on one line; a server may repeat what it was sent, so the password is taken out of them. */
function failureOf(error: SmtpError, hide: (text: string) => string): MailFailure {
  const { code, responseCode, command = '' } = error
  const said = hide(error.response ?? error.message)
    .replace(/[\p{Cc}\p{Cf}\s]+/gu, ' ')
    .trim()
  // A refusal of the sender, the login or the connection is the operator's to mend; of this address or mail it is final.
  const isRefused = (responseCode ?? 0) >= 500 && /^(RCPT|DATA)/.test(command)
  const isMalformed = code === 'EENVELOPE' && command === 'API'
  const who = responseCode === undefined ? 'the mail server cannot be used' : 'the mail server refused it'
  return new MailFailure(`${who}: ${said}`.slice(0, maxReason), isRefused || isMalformed)
}

function redaction(auth: MailServer['auth']): (text: string) => string {
  if (!auth?.pass) return (text) => text
  const base64 = (text: string) => Buffer.from(text).toString('base64').replace(/=+$/, '')
  const secrets = [auth.pass, base64(auth.pass), base64(`\0${auth.user}\0${auth.pass}`)]
  return (text) => secrets.reduce((rest, secret) => rest.replaceAll(secret, '…'), text)
}
