// The mail server and the sender of emails.
import { type Refuse, Text, type Values } from './variables.ts'

export const mailVariables = { SMTP_URL: Text(), MAIL_FROM: Text() }

export function mailSettings(env: Values<typeof mailVariables>, baseUrl: string, refuse: Refuse) {
  const smtp = env.SMTP_URL ? parseSmtpUrl(env.SMTP_URL) : null
  if (env.SMTP_URL && !smtp) {
    refuse('SMTP_URL must be smtp://<host> or smtps://<host>, with <user>:<password>@ and :<port> where needed.')
  }
  const from = parseMailbox(env.MAIL_FROM || `Berth <berth@${URL.parse(baseUrl)?.hostname}>`)
  if ((env.MAIL_FROM || smtp) && !from) refuse('MAIL_FROM must be an address, such as Berth <berth@example.com>.')
  return {
    /** Null: no emails are sent. */
    mail: smtp && from && { ...smtp, from },
  }
}

/** Errors never quote the URL, because it may contain a password. */
function parseSmtpUrl(text: string) {
  const url = URL.parse(text)
  if (!url || !/^smtps?:$/.test(url.protocol) || !url.hostname || !/^\/?$/.test(url.pathname)) return null
  if (url.search || url.hash) return null
  const secure = url.protocol === 'smtps:'
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const [user, pass] = [decode(url.username), decode(url.password)]
  if (user === null || pass === null) return null
  return { host, port: Number(url.port) || (secure ? 465 : 587), secure, auth: user ? { user, pass } : null }
}

function decode(text: string): string | null {
  try {
    return decodeURIComponent(text)
  } catch {
    return null
  }
}

/** `ada@example.com` or `Ada <ada@example.com>`. */
function parseMailbox(text: string): { name: string; address: string } | null {
  const match = /^(?:"?([^"<>\p{Cc}]*?)"?\s*<)?([^\s<>"@\p{Cc}]+@[a-z0-9.-]+)>?$/iu.exec(text)
  return match && (match[1] !== undefined) === text.endsWith('>') ? { name: match[1] ?? '', address: match[2]! } : null
}
