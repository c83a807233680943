// Where artifacts are stored, and how much disk they may use.
import { Type } from '@sinclair/typebox'
import { type Refuse, Text, type Values } from './variables.ts'

export const artifactVariables = {
  ARTIFACTS_URL: Text(),
  ARTIFACTS_ENDPOINT: Text(),
  ARTIFACTS_REGION: Text('us-east-1'),
  ARTIFACTS_ACCESS_KEY: Text(),
  ARTIFACTS_SECRET_KEY: Text(),
  ARTIFACTS_CACHE_MB: Type.Integer({ minimum: 16, default: 10_240 }),
  DISK_RESERVE_MB: Type.Integer({ minimum: 0, default: 512 }),
}

export function artifactSettings(env: Values<typeof artifactVariables>, refuse: Refuse) {
  const bucket = env.ARTIFACTS_URL ? parseBucketUrl(env.ARTIFACTS_URL) : null
  const endpoint = env.ARTIFACTS_ENDPOINT || `https://s3.${env.ARTIFACTS_REGION}.amazonaws.com`
  if (env.ARTIFACTS_URL && !bucket) refuse('ARTIFACTS_URL must be s3://<bucket> or s3://<bucket>/<prefix>.')
  if (env.ARTIFACTS_URL && !(env.ARTIFACTS_ACCESS_KEY && env.ARTIFACTS_SECRET_KEY)) {
    refuse('ARTIFACTS_URL needs ARTIFACTS_ACCESS_KEY and ARTIFACTS_SECRET_KEY.')
  }
  if (!URL.canParse(endpoint) || !/^https?:\/\/[^/?#@]+(\/[\w./-]*)?$/.test(endpoint)) {
    refuse('ARTIFACTS_ENDPOINT must be an http(s) URL, such as https://s3.example.com.')
  }
  return {
    /** The bucket that all machines share; null: a directory on this machine. */
    artifacts: bucket && {
      ...bucket,
      endpoint,
      region: env.ARTIFACTS_REGION,
      accessKey: env.ARTIFACTS_ACCESS_KEY,
      secretKey: env.ARTIFACTS_SECRET_KEY,
      /** How much of the bucket this machine caches on its disk. */
      cacheMb: env.ARTIFACTS_CACHE_MB,
    },
    /** No build starts while the data directory's disk has less free space. */
    diskReserveMb: env.DISK_RESERVE_MB,
  }
}

/** `s3://bucket` or `s3://bucket/prefix`. The prefix is empty or ends with a slash. */
function parseBucketUrl(text: string): { bucket: string; prefix: string } | null {
  const match = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])((?:\/[\w.-]*[\w-])*)\/?$/.exec(text)
  return match && { bucket: match[1]!, prefix: match[2] ? `${match[2].slice(1)}/` : '' }
}
