// The result of parsing DNS text: a value, or a sentence that says what is wrong.

export type Refused = { ok: false; detail: string }
export type Parsed<T> = { ok: true; value: T } | Refused

export function parsed<T>(value: T): Parsed<T> {
  return { ok: true, value }
}

export function refused(detail: string): Refused {
  return { ok: false, detail }
}

const shownLength = 60

// Details appear in API responses and logs, so hostile input is shortened, and control characters are removed.
export function shown(text: string): string {
  const visible = text
    .slice(0, shownLength)
    .toWellFormed()
    .replace(/\p{Cc}/gu, '\ufffd')
  return `"${visible}${text.length > shownLength ? '…' : ''}"`
}

// Tab is the one control character that people paste between fields without noticing.
const refusedControl = /[^\P{Cc}\t]/u

export function unreadableText(text: string): string | null {
  if (!text.isWellFormed()) return 'contains half of a surrogate pair, which is not valid Unicode text'
  if (refusedControl.test(text)) return 'contains a control character or a line break'
  return null
}
