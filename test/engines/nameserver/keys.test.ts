// The keys of zones in memory: heard of, forgotten, and kept for a start without the database.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { wireName } from '../../../src/dns/packet/wire-names.ts'
import { openZoneKeys } from '../../../src/engines/nameserver/answer/keys.ts'
import type { Notifications } from '../../../src/platform/database/notifications.ts'
import { createSnapshots } from '../../../src/platform/database/snapshots.ts'
import { sharedApi, type TestApi } from '../../helpers/api.ts'
import { until } from '../../helpers/until.ts'

let api: TestApi
let directory: string
const log = pino({ level: 'silent' })
beforeAll(async () => {
  api = await sharedApi()
  directory = await mkdtemp(join(tmpdir(), 'berth-keys-'))
  await api.newProject('site')
  await api.call('POST', '/domains', { body: { project: 'site', name: 'keys.com' } })
})
afterAll(async () => {
  await api.stop()
  await rm(directory, { recursive: true, force: true })
})

const make = async (name: string, more: object = {}) =>
  (await api.call('POST', '/dns/keys.com/keys', { body: { name, ...more } })).body
const snapshotsOf = () => createSnapshots({ directory, vault: api.deps.vault, log, collectMs: 0, pauseMs: 0 })

test('a key is found by its name while it exists, also by a start without the database', async () => {
  const { db, notifications, vault } = api.deps
  const before = await make('before', { purpose: 'transfer' })
  const keys = await openZoneKeys({ db, notifications, vault, log, snapshots: snapshotsOf() })
  const secretOf = (from: typeof keys, { keyName }: { keyName: string }) =>
    from.find(wireName(keyName))?.secret.toString('base64')
  expect(secretOf(keys, before)).toBe(before.secret)
  expect(keys.find(wireName(before.keyName.toUpperCase()))).toMatchObject({
    id: before.id,
    name: before.keyName,
    zone: 'keys.com',
    purpose: 'transfer',
    accountId: api.accountId,
  })
  const [after, gone] = [await make('after'), await make('gone')]
  await until(() => secretOf(keys, after) === after.secret && secretOf(keys, gone) === gone.secret)
  await api.call('DELETE', `/dns/keys.com/keys/${gone.id}`)
  await until(() => keys.find(wireName(gone.keyName)) === null)
  expect(keys.find(wireName('nobody'))).toBeNull()
  await keys.close()

  const deaf: Notifications = { ...notifications, connected: false, on: () => () => {} }
  const alone = await openZoneKeys({ db: null as never, notifications: deaf, vault, log, snapshots: snapshotsOf() })
  expect([before, after, gone].map((key) => secretOf(alone, key))).toEqual([before.secret, after.secret, undefined])
  await alone.close()
})
