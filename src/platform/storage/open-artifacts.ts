// Opens the configured artifact store: a directory on this machine, or a bucket that all machines share.
import { join } from 'node:path'
import type { Logger } from 'pino'
import type { Artifacts } from '../artifacts/artifacts.ts'
import { createBucketArtifacts } from '../artifacts/bucket/artifacts.ts'
import { type BucketOptions, createBucket } from '../artifacts/bucket/client.ts'
import { createArtifacts } from '../artifacts/local-artifacts.ts'

export type ArtifactsConfig = {
  dataDir: string
  /** Null for the directory. */
  artifacts: (BucketOptions & { cacheMb: number }) | null
}

export function openArtifacts({ dataDir, artifacts }: ArtifactsConfig, log?: Logger): Artifacts {
  const root = join(dataDir, 'artifacts')
  if (!artifacts) return createArtifacts(root, log)
  const { cacheMb, ...options } = artifacts
  return createBucketArtifacts({ bucket: createBucket(options), root, cacheBytes: cacheMb * 1024 ** 2, log })
}
