// Sends one email to the mail server, limited in time and on its own connection.
import { Socket } from 'node:net'
import type { SendMailOptions } from 'nodemailer'
import type { Config } from '../../config.ts'

export type MailServer = NonNullable<Config['mail']>

export type Message = Pick<SendMailOptions, 'to' | 'subject' | 'text' | 'html' | 'messageId' | 'inReplyTo' | 'headers'>

export class MailFailure extends Error {
  /** Retrying is pointless, because the server won't accept email for this address. */
  readonly final: boolean

  constructor(reason: string, final = false) {
    super(reason)
    this.final = final
  }
}

export type TransportOptions = {
  /** From connecting until the server has accepted the email. */
  timeoutMs?: number
  /** How long an email may take when the process stops. Cut off later, it would be sent twice. */
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
    // Never sends a password unencrypted to another machine. The local server often has a self-signed certificate.
    ignoreTLS: isLocal,
    requireTLS: auth !== null && !isLocal,
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    dnsTimeout: timeoutMs,
    // Otherwise nodemailer could read files and URLs.
    disableFileAccess: true,
    disableUrlAccess: true,
  }

  return {
    async send(message, signal) {
      // Loaded with the first email, which saves 23 MB on installations without a mail server.
      const { createTransport } = await import('nodemailer')
      // Our own socket, because nodemailer's timeouts restart with every byte and its sending can't be aborted.
      const socket = new Socket()
      const abort = new AbortController()
      abort.signal.addEventListener('abort', () => socket.destroy())
      socket.once('connect', () => abort.signal.aborted && socket.destroy())
      const late = setTimeout(() => abort.abort(`no end within ${timeoutMs / 1000} s`), timeoutMs)
      let grace: NodeJS.Timeout | undefined
      const stop = () => {
        grace = setTimeout(() => abort.abort('the worker stops'), graceMs)
      }
      signal.addEventListener('abort', stop, { once: true })
      try {
        const aborted = Promise.withResolvers<never>()
        abort.signal.addEventListener('abort', () => aborted.reject(new MailFailure(String(abort.signal.reason))))
        aborted.promise.catch(() => {})
        const transport = createTransport({ ...settings, socket })
        const sending = transport.sendMail({ ...message, from })
        sending.catch(() => {})
        await Promise.race([sending, aborted.promise])
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

/** The server's reply on one line, without the password, which a server may repeat. */
function failureOf(error: SmtpError, hide: (text: string) => string): MailFailure {
  const { code, responseCode, command = '' } = error
  const reply = hide(error.response ?? error.message)
    .replace(/[\p{Cc}\p{Cf}\s]+/gu, ' ')
    .trim()
  // Refusals of the sender, the login or the connection are the operator's to fix. Those of this address or email are final.
  const isRefused = (responseCode ?? 0) >= 500 && /^(RCPT|DATA)/.test(command)
  const isMalformed = code === 'EENVELOPE' && command === 'API'
  const summary = responseCode === undefined ? 'the mail server cannot be used' : 'the mail server refused it'
  return new MailFailure(`${summary}: ${reply}`.slice(0, maxReason), isRefused || isMalformed)
}

function redaction(auth: MailServer['auth']): (text: string) => string {
  if (!auth?.pass) return (text) => text
  const base64 = (text: string) => Buffer.from(text).toString('base64').replace(/=+$/, '')
  const secrets = [auth.pass, base64(auth.pass), base64(`\0${auth.user}\0${auth.pass}`)]
  return (text) => secrets.reduce((rest, secret) => rest.replaceAll(secret, '…'), text)
}
