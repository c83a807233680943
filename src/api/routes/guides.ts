// /docs/guides and /changelog: pages for people, rendered from docs/guides and CHANGELOG.md.
import { readdir, readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { Marked } from 'marked'
import { Fault } from '../../platform/errors.ts'
import { root } from '../../platform/installation.ts'
import { type PublicAnswer, publicAnswer, sendPublic } from '../http/public-answers.ts'

const hidden = { schema: { hide: true } } as const

type Pages = Map<string, PublicAnswer>

export const guideRoutes: FastifyPluginAsync = async (app) => {
  // Rendered for the first reader, and once: they are part of the program.
  let pages: Promise<Pages> | null = null

  async function send(request: FastifyRequest, reply: FastifyReply) {
    pages ??= renderPages().catch((error) => {
      pages = null
      throw error
    })
    const page = (await pages).get(request.url.split('?', 1)[0]!)
    if (!page) throw new Fault('route_not_found', 'There is no such guide.')
    return sendPublic(request, reply, page)
  }

  app.get('/docs/guides', hidden, async (_request, reply) => reply.redirect('/docs/guides/', 301))
  app.get('/docs/guides/:name', hidden, send)
  app.get('/changelog', hidden, send)
}

/** By the path of their address. */
async function renderPages(): Promise<Pages> {
  const guides = (await readdir(join(root, 'docs/guides'))).filter((name) => name.endsWith('.md'))
  const files = new Map([
    ['/changelog', 'CHANGELOG.md'],
    ['/docs/guides/', 'docs/guides/README.md'],
    ...guides.map((name) => [`/docs/guides/${basename(name, '.md')}`, `docs/guides/${name}`] as const),
  ])
  files.delete('/docs/guides/README')
  const rendered = [...files].map(
    async ([path, file]) => [path, render(await readFile(join(root, file), 'utf8'))] as const,
  )
  return new Map(await Promise.all(rendered))
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
    // Files refer to each other by their names, pages by their addresses.
    if (token.type === 'link') token.href = token.href.replace(/^([\w-]+)\.md(?=#|$)/, '$1')
  },
})

function render(markdown: string): PublicAnswer {
  const title = /^# (.+)$/m.exec(markdown)?.[1] ?? 'Berth'
  const page = `<!doctype html>
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
  return publicAnswer('text/html; charset=utf-8', page)
}

// Wide tables and lines of code are scrolled on a telephone; the page is not.
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
