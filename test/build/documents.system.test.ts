// Runs the thread as it is bundled: a bundle loads packages differently.
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { expect, test } from 'vitest'
import { buildParts } from '../../build/parts.ts'
import type { Document, Kind } from '../../src/api/documents/worker.ts'

const paths: Record<Kind, string[]> = {
  guides: ['/changelog', '/docs/guides/'],
  reference: ['/docs/', '/docs/js/scalar.js'],
  openapi: ['/openapi.yaml', '/openapi.json'],
}

test.each(Object.entries(paths))('%s', async (kind, expected) => {
  const { server } = await buildParts(['server'])
  const documents = await new Promise<Document[]>((resolve, reject) => {
    const worker = new Worker(join(server, 'src/api/documents/worker.js'), { workerData: kind })
    worker.on('message', resolve).on('error', reject)
  })
  expect(documents.map(({ path }) => path)).toEqual(expect.arrayContaining(expected))
  expect(documents.filter(({ content }) => content.length === 0)).toEqual([])
})
