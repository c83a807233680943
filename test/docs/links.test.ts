// Every link from one document to another leads to a file, and to a heading that it has.
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { expect, test } from 'vitest'
import { root } from './blocks.ts'

const read = (path: string) => readFileSync(join(root, path), 'utf8').replaceAll(/^```.*?^```$/gms, '')

/** As GitHub names the heading. */
const anchorOf = (heading: string) =>
  heading
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_\- ]/gu, '')
    .replaceAll(' ', '-')

const headingsOf = (path: string) => [...read(path).matchAll(/^#+ (.*)$/gm)].map(([, heading]) => anchorOf(heading!))

test('no link in the documents is broken', () => {
  const pages = globSync(['*.md', '{docs,deploy,dashboard,sdk,cli,test,bench}/**/*.md'], {
    cwd: root,
    exclude: (path) => path.includes('node_modules'),
  })
  expect(pages.length).toBeGreaterThan(30)
  const broken = pages.flatMap((page) =>
    [...read(page).matchAll(/\]\((?![a-z]+:|\/)([^)\s]+)\)/g)].flatMap(([, link]) => {
      const [path = '', anchor] = link!.split('#')
      const target = path ? normalize(join(dirname(page), path)) : page
      const leads = existsSync(join(root, target)) && (!anchor || headingsOf(target).includes(anchor))
      return leads ? [] : [`${page}: ${link}`]
    }),
  )
  expect(broken).toEqual([])
})
