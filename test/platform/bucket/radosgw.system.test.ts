import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Artifacts, type Manifest, StoreUnavailable } from '../../../src/platform/artifacts/artifacts.ts'
import { createBucketArtifacts } from '../../../src/platform/artifacts/bucket/artifacts.ts'
import { type Bucket, createBucket, signatureMs } from '../../../src/platform/artifacts/bucket/client.ts'
import { contentOf } from '../../../src/platform/artifacts/bucket/objects.ts'
import { hasRadosgw, type Radosgw, startRadosgw } from '../../helpers/radosgw.ts'

const dayMs = 24 * 3600_000

describe.skipIf(!hasRadosgw())('a real S3 service', () => {
  let service: Radosgw
  let bucket: Bucket
  let directory: string
  const opened: Artifacts[] = []
  beforeAll(async () => {
    service = await startRadosgw()
    bucket = createBucket(service.options)
    directory = await mkdtemp(join(tmpdir(), 'berth-s3-'))
  }, 120_000)
  afterAll(async () => {
    for (const one of opened) one.close()
    bucket?.close()
    await service?.stop()
    await rm(directory, { recursive: true, force: true })
  })

  function machine(name: string): Artifacts {
    const artifacts = createBucketArtifacts({
      ...{ bucket: createBucket(service.options), root: join(directory, name), cacheBytes: 1 << 30 },
    })
    opened.push(artifacts)
    return artifacts
  }
  const manifestOf = (files: Manifest['files']): Manifest => ({
    ...{ version: 1, kind: 'static', files, spaFallback: false, cleanUrls: true },
  })

  test('lists more than a page, and refuses a wrong key, another bucket and an old signature', async () => {
    const keys = Array.from({ length: 1100 }, (_, index) => `many/${String(index).padStart(4, '0')}`)
    const left = [...keys]
    const next = async () => {
      for (let key = left.pop(); key; key = left.pop()) await bucket.put(key, contentOf(Buffer.from(key)))
    }
    await Promise.all(Array.from({ length: 32 }, next))
    const found: string[] = []
    for await (const page of bucket.list('many/')) found.push(...page.map(({ key }) => key))
    expect(found).toEqual(keys)
    const other = (change: object) => createBucket({ ...service.options, ...change })
    expect(await other({ secretKey: 'wrong' }).readiness()).toMatch(/refuses the access key.*SignatureDoesNotMatch/)
    expect(await other({ bucket: 'nothing' }).readiness()).toMatch(/does not exist/)
    const old = new Date(Date.now() - signatureMs - 60_000)
    await expect(bucket.delete(keys[0]!, old)).rejects.toThrow(StoreUnavailable)
    expect(await bucket.head(keys[0]!)).toMatchObject({ size: 9 })
    await bucket.delete(keys[0]!, new Date(Date.now() - signatureMs + 120_000))
    expect(await bucket.head(keys[0]!)).toBeNull()
    const wrong = { ...contentOf(Buffer.from('one')), body: Buffer.from('two') }
    await expect(bucket.put('wrong', wrong)).rejects.toThrow(StoreUnavailable)
    expect(await bucket.head('wrong')).toBeNull()
  }, 120_000)

  test('has what one machine publishes for another: pages, large files, trees', async () => {
    const [one, two] = [machine('one'), machine('two')]
    const page = Buffer.from('<p>text</p>\n'.repeat(500))
    const large = Buffer.alloc(30 << 20, 'large ')
    const files = {
      'index.html': await one.store('index.html', page.length, [page]),
      'a.mp4': await one.store('a.mp4', large.length, [large]),
    }
    await one.publish('dpl_site', manifestOf(files))
    expect(await two.read('dpl_site')).toEqual(manifestOf(files))
    expect(await two.load(files['index.html'].hash)).toEqual(page)
    const file = await two.open(files['a.mp4'].hash)
    expect((await file.readFile()).equals(large)).toBe(true)
    await file.close()
    expect(await two.isWhole(files['index.html'].hash, 'br')).toBe(true)

    const tree = one.serverDirectory('dpl_server')
    await mkdir(join(tree, 'bin'), { recursive: true })
    await writeFile(join(tree, 'bin/run'), 'run', { mode: 0o755 })
    await symlink('bin/run', join(tree, 'run'))
    await one.publish('dpl_server', { ...manifestOf({}), kind: 'node', root: '' })
    const there = await two.openTree('dpl_server')
    expect(await readFile(join(there.directory, 'run'), 'utf8')).toBe('run')
    there.release()
    await two.remove('dpl_server')
    expect(await one.read('dpl_server', { fresh: true })).toBeNull()
  }, 120_000)

  test('is swept of what is old, and of nothing that is young', async () => {
    const [one, two] = [machine('one'), machine('two')]
    const { hash } = await one.store('a.png', 6, [Buffer.from('unused')])
    const unused = async (usedBefore: number) => {
      const names: string[] = []
      const folder = Number.parseInt(hash.slice(0, 2), 16)
      for await (const some of two.inventory.unused(folder, (one) => one !== hash, usedBefore)) names.push(...some)
      return names
    }
    expect(await unused(Date.now())).toEqual([])
    expect(await two.inventory.removeUnused([hash], Date.now())).toEqual({ files: 0, bytes: 0 })
    // As it will be in eight days.
    const later = Date.now() + 8 * dayMs
    expect(await unused(later)).toEqual([hash])
    expect(await two.inventory.removeUnused([hash], later)).toEqual({ files: 1, bytes: 6 })
    await expect(one.publish('dpl_late', manifestOf({ 'a.png': { hash, size: 6 } }))).rejects.toThrow(StoreUnavailable)
    expect(await one.read('dpl_late', { fresh: true })).toBeNull()
  }, 120_000)
})
