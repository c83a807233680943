import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Artifacts } from '../../../src/platform/artifacts/artifacts.ts'
import { createBucketArtifacts } from '../../../src/platform/artifacts/bucket/artifacts.ts'
import { createBucket } from '../../../src/platform/artifacts/bucket/client.ts'
import { BackupError, writeBackup } from '../../../src/services/backups/backup.ts'
import { checkArchive, restoreArchive } from '../../../src/services/backups/restore.ts'
import { type S3Server, startS3 } from '../../helpers/s3.ts'
import {
  addServer,
  emptyDatabase,
  migrationsOf,
  newDirectory,
  newInstallation,
  restoreTo,
  searchPath,
  treeOf,
} from './installation.ts'

let server: S3Server
let directory: string
const opened: Artifacts[] = []
beforeAll(async () => {
  server = await startS3()
  directory = await mkdtemp(join(tmpdir(), 'berth-backup-bucket-'))
})
afterAll(async () => {
  for (const one of opened) one.close()
  await server.close()
  await rm(directory, { recursive: true })
})

function machine(name: string): Artifacts {
  const bucket = createBucket(server.options)
  const artifacts = createBucketArtifacts({ bucket, root: join(directory, name), cacheBytes: 1 << 30 })
  opened.push(artifacts)
  return artifacts
}

const never = new AbortController().signal

test('a backup of a directory is restored into a bucket, and a backup of that into a directory', async () => {
  const place = await newInstallation()
  const ids = [await place.ready(), await place.ready()]
  const node = await addServer(place)
  const first = join(await newDirectory(), 'backup')
  await writeBackup(place, first, never)

  const migrations = await migrationsOf()
  const { key } = await checkArchive(first, place.keys, migrations.all)
  const dataDir = await newDirectory()
  const target = { databaseUrl: await emptyDatabase(), dataDir, artifacts: machine('one'), searchPath, migrations }
  expect((await restoreArchive(first, key, target)).incomplete).toEqual([])
  const two = machine('two')
  for (const id of ids) {
    const manifest = (await two.read(id))!
    expect(manifest).toEqual(await place.artifacts.read(id))
    for (const { hash } of Object.values(manifest.files)) {
      expect((await two.load(hash)).equals(await place.artifacts.load(hash))).toBe(true)
    }
  }
  const tree = await two.openTree(node)
  expect(await treeOf(tree.directory)).toEqual(await treeOf(place.artifacts.serverDirectory(node)))
  tree.release()

  const second = join(await newDirectory(), 'backup')
  await writeBackup({ ...place, databaseUrl: target.databaseUrl, dataDir, artifacts: two }, second, never)
  const restored = await restoreTo(second, place.keys)
  expect(restored.end.incomplete).toEqual([])
  const all = (root: string) => treeOf(join(root, 'artifacts'))
  expect(await all(restored.dataDir)).toEqual(await all(place.dataDir))
})

test('a backup fails as a whole where the bucket is away', async () => {
  const place = await newInstallation()
  await place.ready()
  server.trouble = () => 'close'
  const file = join(await newDirectory(), 'backup')
  const backup = writeBackup({ ...place, artifacts: machine('three') }, file, never)
  await expect(backup).rejects.toThrow(BackupError)
  await expect(backup).rejects.toThrow(/artifact store .* does not answer.*Nothing was written/)
  server.trouble = null
})
