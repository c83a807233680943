// openapi.yaml, which the tests compare with the routes, and the same document as JSON.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parse } from 'yaml'
import { root } from '../../platform/installation.ts'
import type { Document } from './worker.ts'

export async function readOpenApi(): Promise<Document[]> {
  const yaml = await readFile(join(root, 'openapi.yaml'), 'utf8')
  const json = JSON.stringify(parse(yaml, { maxAliasCount: -1 }))
  return [
    { path: '/openapi.yaml', type: 'application/yaml; charset=utf-8', content: yaml },
    { path: '/openapi.json', type: 'application/json; charset=utf-8', content: json },
  ]
}
