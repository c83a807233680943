// Where builds get their source, and what they may use.
import { Type } from '@sinclair/typebox'
import { type Refuse, Text, type Values } from './variables.ts'

export const buildVariables = {
  GIT_URL_TEMPLATE: Text('https://github.com/{repo}.git'),
  BUILD_CONCURRENCY: Type.Integer({ minimum: 1, default: 2 }),
  BUILD_TIMEOUT_MS: Type.Integer({ minimum: 1000, default: 900_000 }),
  BUILD_MEMORY_MB: Type.Integer({ minimum: 64, default: 2048 }),
  BUILD_CACHE_MB: Type.Integer({ minimum: 0, default: 10_240 }),
  BUILD_SANDBOX: Type.Union([Type.Literal('auto'), Type.Literal('bubblewrap'), Type.Literal('none')], {
    default: 'auto',
  }),
  PATH: Text('/usr/local/bin:/usr/bin:/bin'),
}

export function buildSettings(env: Values<typeof buildVariables>, refuse: Refuse) {
  if (!env.GIT_URL_TEMPLATE.includes('{repo}')) refuse('GIT_URL_TEMPLATE must contain {repo}.')
  return {
    gitUrlTemplate: env.GIT_URL_TEMPLATE,
    build: {
      concurrency: env.BUILD_CONCURRENCY,
      timeoutMs: env.BUILD_TIMEOUT_MS,
      memoryMb: env.BUILD_MEMORY_MB,
      /** Maximum total size of the build caches on this machine. */
      cacheMb: env.BUILD_CACHE_MB,
      sandbox: env.BUILD_SANDBOX,
    },
    /** Where git and the build tools are found. */
    searchPath: env.PATH,
  }
}
