// Renders an email as plain text and HTML: what happened, the facts, what to do next, and one link.
import { html } from '../../platform/http/html.ts'

export type EmailContent = {
  subject: string
  /** What happened, in one or two sentences. */
  what: string
  facts: [name: string, value: string | null][]
  next: string
  link: { title: string; url: string }
  /** Why the reader gets this email. */
  because: string
}

/** Where the reader can unsubscribe; null if there are no settings. */
export type SettingsLinks = { unsubscribe: string; settings: string } | null

const maxCharacters = 300

/** Puts untrusted text on one line, without characters that would hide or reorder the text around it. */
export function oneLine(text: string): string {
  const line = text.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\s]+/gu, ' ').trim()
  const characters = [...line]
  return characters.length > maxCharacters ? `${characters.slice(0, maxCharacters - 1).join('')}…` : line
}

/** Cleans every text of an email. */
function cleanContent({ subject, what, facts, next, link, because }: EmailContent, more: number) {
  return {
    subject: oneLine(subject),
    what: oneLine(what),
    facts: facts.flatMap(([name, value]) => (value ? [[name, oneLine(value)] as const] : [])),
    more: more > 0 ? `And ${more} more of this kind within the hour.` : null,
    next: oneLine(next),
    link: { title: link.title, url: new URL(link.url).href },
    because: oneLine(because),
  }
}

type CleanContent = ReturnType<typeof cleanContent>

function textOf({ what, facts, more, next, link, because }: CleanContent, ways: SettingsLinks): string {
  const paragraphs = [
    what,
    facts.map(([name, value]) => `${name}: ${value}`).join('\n'),
    more,
    next,
    `${link.title}:\n${link.url}`,
    `-- \n${because}`,
    ways && `Unsubscribe from these emails:\n${ways.unsubscribe}\nEmail settings: ${ways.settings}`,
  ]
  return `${paragraphs.filter(Boolean).join('\n\n')}\n`
}

function htmlOf({ subject, what, facts, more, next, link, because }: CleanContent, ways: SettingsLinks): string {
  const grey = html`color:#666`
  const rows = facts.map(
    ([name, value]) =>
      html`<tr><td style="padding:2px 16px 2px 0;vertical-align:top;${grey}">${name}</td><td style="padding:2px 0">${value}</td></tr>`,
  )
  const endings = ways
    ? html`<br><a href="${ways.unsubscribe}" style="${grey}">Unsubscribe from these emails</a> · <a href="${ways.settings}" style="${grey}">Email settings</a>`
    : ''
  return html`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${subject}</title></head>
<body style="margin:0;padding:24px;font:15px/1.5 system-ui,sans-serif;color:#1a1a1a;background:#fff">
<div style="max-width:560px">
<p style="font-weight:600">${what}</p>
<table role="presentation" style="border-collapse:collapse;font-size:14px">${rows}</table>
${more ? html`<p>${more}</p>` : ''}
<p>${next}</p>
<p><a href="${link.url}">${link.title}</a></p>
<p style="margin-top:32px;font-size:12px;${grey}">${because}${endings}</p>
</div></body></html>
`.text
}

export function renderEmail(
  letter: EmailContent,
  ways: SettingsLinks,
  more = 0,
): { subject: string; text: string; html: string } {
  const clean = cleanContent(letter, more)
  return { subject: clean.subject, text: textOf(clean, ways), html: htmlOf(clean, ways) }
}
