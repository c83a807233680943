// "Copy as curl" on every action: whatever a screen sends by itself, and not by a part of the kit that shows it.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const root = 'dashboard/src/screens'
const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.tsx'))

/** What goes to `/auth` has no curl: its cookie is for browsers alone. */
const toAuth = /callAuth(?:<[^>]+>)?\((?:[^()]|\([^()]*\))*\)\s*\.send\(/g

test('no screen sends what it does not show as curl', () => {
  const sending = files.filter((name) => readFileSync(join(root, name), 'utf8').replace(toAuth, '').includes('.send('))
  const showing = sending.filter((name) => /<Curl\b/.test(readFileSync(join(root, name), 'utf8')))
  expect(sending.filter((name) => !showing.includes(name))).toEqual([])
  // Those that have a bar of their own, and no form.
  expect(showing.sort()).toEqual(['zone-paste.tsx', 'zone-records.tsx'])
})
