// HTML by templates that escape: whatever is put into one is text, unless a template made it.

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

export class Html {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

export type HtmlPart = string | Html | Html[]

function written(part: HtmlPart): string {
  if (Array.isArray(part)) return part.map(written).join('')
  return part instanceof Html ? part.text : part.replace(/[&<>"']/g, (found) => entities[found]!)
}

/** For text and for attributes in quotes. */
export function html(texts: TemplateStringsArray, ...parts: HtmlPart[]): Html {
  return new Html(texts.map((text, index) => text + (index < parts.length ? written(parts[index]!) : '')).join(''))
}
