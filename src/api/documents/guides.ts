// The guides and the changelog as HTML, rendered from docs/guides and CHANGELOG.md.
import { readdir, readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { Marked } from 'marked'
import { root } from '../../platform/installation.ts'
import type { Document } from './worker.ts'

export async function renderGuides(): Promise<Document[]> {
  const guides = (await readdir(join(root, 'docs/guides'))).filter((name) => name.endsWith('.md'))
  const files = new Map([
    ['/changelog', 'CHANGELOG.md'],
    ['/docs/guides/', 'docs/guides/README.md'],
    ...guides.map((name) => [`/docs/guides/${basename(name, '.md')}`, `docs/guides/${name}`] as const),
  ])
  files.delete('/docs/guides/README')
  const type = 'text/html; charset=utf-8'
  const render = async ([path, file]: readonly [string, string]) => ({
    path,
    type,
    content: pageOf(await readFile(join(root, file), 'utf8')),
  })
  return Promise.all([...files].map(render))
}

const marked = new Marked({
  gfm: true,
  renderer: {
    heading({ tokens, depth, text }) {
      const id = text
        .toLowerCase()
        .replace(/[^\p{L}\p{N} -]/gu, '')
        .replaceAll(' ', '-')
      return `<h${depth} id="${id}">${this.parser.parseInline(tokens)}</h${depth}>\n`
    },
  },
  walkTokens(token) {
    // Files link to file names, pages to URLs.
    if (token.type === 'link') token.href = token.href.replace(/^([\w-]+)\.md(?=#|$)/, '$1')
  },
})

function pageOf(markdown: string): string {
  const title = /^# (.+)$/m.exec(markdown)?.[1] ?? 'Berth'
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${title} · Berth</title>
<style>${style}</style>
</head>
<body>
<nav><a href="/docs/guides/">Guides</a> <a href="/docs/">Reference</a> <a href="/errors">Errors</a> <a href="/changelog">Changelog</a></nav>
<main>
${marked.parse(markdown, { async: false })}</main>
</body>
</html>
`
}

// On a phone, wide tables and code scroll by themselves instead of the page.
const style = `
:root{color-scheme:light dark}
body{font:16px/1.6 system-ui,sans-serif;max-width:48rem;margin:2rem auto;padding:0 1rem}
nav a{margin-right:1rem}
code{font:.9em ui-monospace,monospace}
pre,table{display:block;overflow-x:auto}
pre{padding:.8rem 1rem;background:color-mix(in srgb,currentColor 8%,transparent);border-radius:6px;line-height:1.45}
table{border-collapse:collapse}
th,td{text-align:left;vertical-align:top;padding:.3rem .8rem .3rem 0;border-bottom:1px solid color-mix(in srgb,currentColor 20%,transparent)}
`
