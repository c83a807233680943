// What is kept in memory beside the database: one name that cannot be read leaves all others as current as ever.
import { pino } from 'pino'
import { afterEach, test } from 'vitest'
import { type Following, follow } from '../../src/platform/database/mirror.ts'
import type { Notifications } from '../../src/platform/database/notifications.ts'
import { until } from '../helpers/until.ts'

let following: Following | undefined
afterEach(() => following?.close())

test('a name that cannot be read keeps no other from being read, whenever they change', async () => {
  const known = new Set<string>()
  let change = (_name: string) => {}
  const source = {
    what: 'names',
    listen(changed: (name: string) => void) {
      change = changed
      return () => {}
    },
    compare: async () => [],
    async read(names: string[]) {
      if (names.includes('broken')) throw new Error('too large')
      for (const name of names) known.add(name)
    },
  }
  const notifications = { connected: true, on: () => () => {} } as unknown as Notifications
  following = await follow(source, notifications, pino({ level: 'silent' }))
  const others = Array.from({ length: 9 }, (_, n) => `name${n}`)
  for (const name of ['broken', ...others]) change(name)
  await until(() => known.size === others.length)
  change('broken')
  change('later')
  await until(() => known.has('later'))
})
