// Template literals for HTML that escape everything except HTML from another template.

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

/** Escapes for text and for quoted attributes. */
export function html(texts: TemplateStringsArray, ...parts: HtmlPart[]): Html {
  return new Html(texts.map((text, index) => text + (index < parts.length ? written(parts[index]!) : '')).join(''))
}
