// The part of S3's XML that we need: the page of a list, and the code of an error.

export type ListedObject = { key: string; size: number; modifiedMs: number }

const entities: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

function textOf(xml: string, name: string): string | null {
  const found = new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1]
  if (found === undefined) return null
  return found.replace(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|(\w+));/gi, (whole, decimal, hex, name) => {
    if (name !== undefined) return entities[name] ?? whole
    const code = decimal ? Number(decimal) : Number.parseInt(hex, 16)
    return code <= 0x10ffff ? String.fromCodePoint(code) : whole
  })
}

/** Null if it isn't a page of a list. */
export function parseList(xml: string): { objects: ListedObject[]; next: string | null } | null {
  if (!/<ListBucketResult[\s>]/.test(xml)) return null
  const objects: ListedObject[] = []
  for (const [, content] of xml.matchAll(/<Contents>(.*?)<\/Contents>/gs)) {
    const key = textOf(content!, 'Key')
    const size = Number(textOf(content!, 'Size'))
    const modifiedMs = Date.parse(textOf(content!, 'LastModified') ?? '')
    if (key === null || !Number.isSafeInteger(size) || Number.isNaN(modifiedMs)) return null
    objects.push({ key, size, modifiedMs })
  }
  const isCut = textOf(xml, 'IsTruncated') === 'true'
  const next = textOf(xml, 'NextContinuationToken')
  // Taken for complete, a truncated list without a continuation would hide objects.
  if (isCut && !next) return null
  return { objects, next: isCut ? next : null }
}

/** Empty if the text has none. */
export function parseCode(xml: string): string {
  return (textOf(xml, 'Code') ?? '').replace(/\W/g, '').slice(0, 60)
}
