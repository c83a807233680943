// What certificate authorities are to be shown over HTTP, by token: there are few, and each lives for seconds.
import type { Logger } from 'pino'
import type { Database } from '../db.ts'
import { follow } from '../follow.ts'
import type { Notifications } from '../notifications.ts'
import { readHttpChallenges } from '../services/served-certificates.ts'

export type Challenges = {
  /** The answer to an http-01 challenge if the path is that of one. */
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
    },
    notifications,
    log,
  )
  return {
    find: (path) => (path.startsWith(challengeFolder) ? values.get(path.slice(challengeFolder.length)) : undefined),
    close: following.close,
  }
}
