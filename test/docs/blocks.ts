// Blocks of code in Markdown.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export const root = join(import.meta.dirname, '../..')

export const pages = [
  'README.md',
  ...readdirSync(join(root, 'docs/guides')).map((name) => join('docs/guides', name)),
  'sdk/README.md',
]

/** Those of one language, in their order. */
export function blocksOf(page: string, language: string): string[] {
  const text = readFileSync(join(root, page), 'utf8')
  return [...text.matchAll(/^```(\w+)\n(.*?)^```$/gms)].flatMap(([, name, code]) => (name === language ? [code!] : []))
}
