// A mail server on loopback that keeps what it is sent, and refuses or hangs when it is told to.
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'

export type Received = {
  from: string
  to: string[]
  raw: string
  /** By name in lower case, unfolded. */
  headers: Record<string, string>
  subject: string
  text: string
  html: string
}

export type Mailbox = {
  url: string
  mails: Received[]
  /** How many mails were begun, whatever became of them. */
  begun: number
  /** Called before a recipient is accepted, and before the end of a mail is answered. */
  onRecipient: (address: string) => Promise<void>
  onMail: () => Promise<void>
  /** The mails to one address. */
  to(address: string): Received[]
  close(): Promise<void>
}

export class Refusal extends Error {
  readonly responseCode: number

  constructor(responseCode: number, message: string) {
    super(message)
    this.responseCode = responseCode
  }
}

export async function startMailbox(options: SMTPServerOptions = {}): Promise<Mailbox> {
  const settled = (work: Promise<void>, done: (error?: Error) => void) =>
    work.then(
      () => done(),
      (error) => done(error),
    )
  const server = new SMTPServer({
    authOptional: true,
    hideSTARTTLS: true,
    disableReverseLookup: true,
    onRcptTo: ({ address }, _session, done) => void settled(mailbox.onRecipient(address), done),
    onData(stream, session, done) {
      mailbox.begun++
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        const receive = async () => {
          await mailbox.onMail()
          const { mailFrom, rcptTo } = session.envelope
          const to = rcptTo.map(({ address }) => address)
          mailbox.mails.push(read(Buffer.concat(chunks).toString('latin1'), mailFrom ? mailFrom.address : '', to))
        }
        void settled(receive(), done)
      })
    },
    ...options,
  })
  server.on('error', () => {})
  const listener = server.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const mailbox: Mailbox = {
    url: `smtp://127.0.0.1:${(listener.address() as AddressInfo).port}`,
    mails: [],
    begun: 0,
    onRecipient: async () => {},
    onMail: async () => {},
    to: (address) => mailbox.mails.filter(({ to }) => to.includes(address)),
    close: () => new Promise((resolve) => server.close(() => resolve())),
  }
  return mailbox
}

function read(raw: string, from: string, to: string[]): Received {
  const { headers, body } = split(raw)
  const boundary = /boundary="([^"]+)"/.exec(headers['content-type'] ?? '')?.[1]
  const parts = boundary
    ? body
        .split(`--${boundary}`)
        .slice(1, -1)
        .map((part) => split(part.replace(/^\r\n/, '')))
    : []
  const part = (type: string) => {
    const found = parts.find(({ headers }) => headers['content-type']?.startsWith(type))
    return found ? decode(found.body, found.headers['content-transfer-encoding'] ?? '') : ''
  }
  return {
    from,
    to,
    raw,
    headers,
    subject: words(headers.subject ?? ''),
    text: part('text/plain'),
    html: part('text/html'),
  }
}

function split(text: string): { headers: Record<string, string>; body: string } {
  const end = text.indexOf('\r\n\r\n')
  const lines = text
    .slice(0, end)
    .replace(/\r\n[ \t]+/g, ' ')
    .split('\r\n')
  const headers: Record<string, string> = {}
  for (const line of lines) {
    const at = line.indexOf(':')
    const name = line.slice(0, at).toLowerCase()
    // Twice the same header would show as one with a break in it.
    headers[name] = name in headers ? `${headers[name]}\n${line.slice(at + 1).trim()}` : line.slice(at + 1).trim()
  }
  return { headers, body: text.slice(end + 4) }
}

function decode(body: string, encoding: string): string {
  if (/base64/i.test(encoding)) return Buffer.from(body, 'base64').toString()
  if (!/quoted-printable/i.test(encoding)) return Buffer.from(body, 'latin1').toString().replaceAll('\r\n', '\n')
  return quoted(body.replace(/=\r\n/g, '')).replaceAll('\r\n', '\n')
}

function quoted(text: string): string {
  const bytes = text.replace(/=([0-9A-F]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  return Buffer.from(bytes, 'latin1').toString()
}

/** Words that are encoded in a header (RFC 2047). */
function words(text: string): string {
  return text
    .replace(/\?=\s+=\?/g, '?==?')
    .replace(/=\?utf-8\?([bq])\?([^?]*)\?=/gi, (_, how: string, word: string) =>
      how.toLowerCase() === 'b' ? Buffer.from(word, 'base64').toString() : quoted(word.replaceAll('_', ' ')),
    )
}
