// A bucket that somebody else writes to: what it says reaches no file of the machine but copies of objects.
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type Artifacts, type Manifest, MissingObject } from '../../../src/platform/artifacts/artifacts.ts'
import { createBucketArtifacts } from '../../../src/platform/artifacts/bucket/artifacts.ts'
import { createBucket } from '../../../src/platform/artifacts/bucket/client.ts'
import { type S3Server, startS3 } from '../../helpers/s3.ts'

let server: S3Server
let directory: string
let artifacts: Artifacts

beforeEach(async () => {
  server = await startS3()
  directory = await mkdtemp(join(tmpdir(), 'berth-bucket-'))
  const root = join(directory, 'machine')
  artifacts = createBucketArtifacts({ bucket: createBucket(server.options), root, cacheBytes: 1 << 30 })
})
afterEach(async () => {
  artifacts.close()
  await server.close()
  await rm(directory, { recursive: true })
})

const hash = 'a'.repeat(64)
const site: Manifest = { version: 1, kind: 'static', files: {}, spaFallback: false, cleanUrls: true }

function put(manifest: unknown): void {
  const body = Buffer.from(JSON.stringify(manifest))
  server.objects.set('manifests/dpl_a.json', { body, sha256: undefined, modifiedMs: Date.now() })
}

test('a manifest that names a file outside of the store removes nothing', async () => {
  const file = join(directory, 'precious')
  await writeFile(file, 'kept')
  put({ ...site, kind: 'node', tree: { hash: '../precious', size: 4 } })
  await expect(artifacts.openTree('dpl_a')).rejects.toThrow(MissingObject)
  expect(await readFile(file, 'utf8')).toBe('kept')
})

test.each<[string, object]>([
  ['a file has no hash', { files: { 'index.html': { hash: '../../etc/passwd', size: 4 } } }],
  ['a file has no size', { files: { 'index.html': { hash, size: -1 } } }],
  ['a copy has no size', { files: { 'index.html': { hash, size: 4, br: '4' } } }],
  ['a file is nothing', { files: { 'index.html': null } }],
  ['a tree has no hash', { kind: 'node', tree: { hash: `${hash}/..`, size: 4 } }],
  ['a server runs outside of its tree', { kind: 'node', root: 'a/../..', tree: { hash, size: 4 } }],
  ['a server runs anywhere', { kind: 'node', root: '/etc', tree: { hash, size: 4 } }],
  ['a site is of no kind', { kind: 'other' }],
])('a manifest is none where %s', async (_what, part) => {
  put({ ...site, ...part })
  expect(await artifacts.read('dpl_a')).toBeNull()
  put({ ...site, files: { 'index.html': { hash, size: 4, br: 3, gzip: 3 } } })
  expect(await artifacts.read('dpl_a')).not.toBeNull()
})
