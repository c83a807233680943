// The pending http-01 challenges by token: there are few, and each exists for seconds.
import type { Logger } from 'pino'
import type { Database } from '../platform/database/database.ts'
import { follow } from '../platform/database/mirror.ts'
import type { Notifications } from '../platform/database/notifications.ts'
import { readHttpChallenges } from '../services/certificates/index.ts'

export type Challenges = {
  /** The response to an http-01 challenge, if the path is one. */
  find(path: string): string | undefined
  close(): Promise<void>
}

export const challengeFolder = '/.well-known/acme-challenge/'

export async function createChallenges(db: Database, notifications: Notifications, log: Logger): Promise<Challenges> {
  let values = new Map<string, string>()
  async function load(): Promise<void> {
    values = new Map((await readHttpChallenges(db)).map(({ token, value }) => [token, value]))
  }
  const following = await follow(
    {
      listen: (changed) => notifications.on('challenge', changed),
      what: 'challenges',
      async compare() {
        await load()
        return []
      },
      read: load,
      // None are known then; their orders fail and are retried.
      restore: async () => true,
    },
    notifications,
    log,
  )
  return {
    find: (path) => (path.startsWith(challengeFolder) ? values.get(path.slice(challengeFolder.length)) : undefined),
    close: following.close,
  }
}
