import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { open, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { migrate, readFunctionFiles, readMigrationFiles } from '../../../prisma/migrate.ts'
import { createReapHandler } from '../../../src/engines/builder/jobs/reap.ts'
import { Postponed } from '../../../src/jobs/worker.ts'
import { connectAlone } from '../../../src/platform/database/database.ts'
import { createVault } from '../../../src/platform/secrets/secrets.ts'
import { writeBackup } from '../../../src/services/backups/backup.ts'
import { checkArchive, restoreArchive } from '../../../src/services/backups/restore.ts'
import { lockArtifacts } from '../../../src/services/backups/statements.ts'
import { whileNoBackup } from '../../../src/services/deployments/retention/stored-files.ts'
import { maintainEventMonths } from '../../../src/services/events/months.ts'
import { until } from '../../helpers/until.ts'
import {
  addOwnFiles,
  addServer,
  advisoryLocks,
  backUp,
  cleanUp,
  emptyDatabase,
  migrationsOf,
  never,
  newDirectory,
  newInstallation,
  query,
  restoreTo,
  treeOf,
} from './installation.ts'

vi.setConfig({ testTimeout: 60_000 })

afterEach(cleanUp)

/** Every row of every table, and where the sequences stand. */
async function contentOf(url: string): Promise<Record<string, unknown[]>> {
  const content: Record<string, unknown[]> = {}
  const tables = await query<{ name: string }>(
    url,
    `SELECT relname AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')
      AND relname <> '_prisma_migrations' ORDER BY 1`,
  )
  for (const { name } of tables) content[name] = await query(url, `SELECT t::text FROM "${name}" t ORDER BY 1`)
  content.sequences = await query(url, 'SELECT sequencename, last_value FROM pg_sequences ORDER BY 1')
  return content
}

describe('what was restored', () => {
  test('has the months of the log as they were, whatever month it is now', async () => {
    const place = await newInstallation()
    // Half a year and a year later than the migrations that a restore applies.
    await maintainEventMonths(place.db, null, never, new Date(Date.now() + 180 * 86_400_000))
    await maintainEventMonths(place.db, null, never, new Date(Date.now() + 360 * 86_400_000))
    const months = (url: string) =>
      query(
        url,
        `SELECT relname, pg_get_expr(relpartbound, oid) FROM pg_class WHERE relispartition AND relkind = 'r' ORDER BY 1`,
      )
    const { databaseUrl } = await restoreTo(await backUp(place), place.keys)
    expect(await months(databaseUrl)).toEqual(await months(place.databaseUrl))
  })

  test('is what was there: rows, sequences, files, trees, repositories, the CA and the test key', async () => {
    const place = await newInstallation()
    for (let i = 0; i < 3; i++) await place.ready()
    await addServer(place)
    await addOwnFiles(place)
    await query(place.databaseUrl, `INSERT INTO job (kind, payload) VALUES ('reap', '{}'), ('reap', '{}')`)
    const file = await backUp(place)
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    const restored = await restoreTo(file, place.keys)
    expect(restored.end).toMatchObject({ deployments: 4, incomplete: [] })
    const before = await contentOf(place.databaseUrl)
    expect(before.deployment).toHaveLength(4)
    expect(await contentOf(restored.databaseUrl)).toEqual(before)
    expect(await treeOf(join(restored.dataDir, 'artifacts'))).toEqual(await treeOf(join(place.dataDir, 'artifacts')))
    for (const path of ['ca/root.key', 'ca/root.pem', 'test-key']) {
      expect(await readFile(join(restored.dataDir, path), 'utf8')).toBe(
        await readFile(join(place.dataDir, path), 'utf8'),
      )
    }
    const refs = (root: string) => execFileSync('git', ['-C', join(root, 'repos/demo/hello.git'), 'show-ref'])
    expect(refs(restored.dataDir)).toEqual(refs(place.dataDir))
    const [{ sealed }] = (await query<{ sealed: Buffer }>(restored.databaseUrl, 'SELECT sealed FROM variable')) as [
      { sealed: Buffer },
    ]
    expect(createVault(place.keys[0]).open(sealed, 'test').toString()).toBe('a\tsecret\\N\n\0')

    const sameRows = async (sql: string) => {
      const rows = await query(restored.databaseUrl, sql)
      expect(rows).toEqual(await query(place.databaseUrl, sql))
      return rows
    }
    await sameRows('SELECT migration_name, checksum FROM _prisma_migrations ORDER BY 1')
    const triggers = await sameRows('SELECT tgname, tgenabled FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1')
    expect(triggers.length).toBeGreaterThan(20)
    // Again, by a role that owns its database and nothing else.
    const again = {
      ...place,
      databaseUrl: restored.databaseUrl,
      dataDir: restored.dataDir,
      artifacts: restored.artifacts,
    }
    await checkArchive(await backUp(again), place.keys, (await migrationsOf()).all)
    const next = `INSERT INTO job (kind, payload) VALUES ('reap', '{}') RETURNING id`
    expect(await query(restored.databaseUrl, next)).toEqual([{ id: '3' }])
  })

  test('has what deployments without git are built from, and what waits for one; what is damaged is named', async () => {
    const place = await newInstallation()
    const [kept, waiting, lost] = ['kept', 'waits', 'lost'].map((text) =>
      Buffer.from(`${text} ${randomBytes(8).toString('hex')}`),
    )
    const hashes: string[] = []
    for (const content of [kept!, waiting!, lost!]) {
      hashes.push((await place.artifacts.store('', content.length, [content])).hash)
    }
    const { accountId, projectId } = place
    const deploymentId = await place.ready()
    await place.db.deploymentSource.create({
      data: { deploymentId, accountId, projectId, prebuilt: false, missing: 0, newBytes: 1 },
    })
    const file = (path: string, sha256: string, content: Buffer) => ({
      ...{ deploymentId, accountId, projectId, path, sha256, size: content.length, mode: 0o100644, present: true },
    })
    await place.db.sourceFile.createMany({ data: [file('a', hashes[0]!, kept!), file('b', hashes[2]!, lost!)] })
    const upload = { accountId, sha256: hashes[1]!, size: waiting!.length, complete: true }
    await place.db.upload.create({ data: { ...upload, expiresAt: new Date(Date.now() + 3600_000) } })
    await writeFile(place.artifacts.pathOf(hashes[2]!), 'changed')
    const restored = await restoreTo(await backUp(place), place.keys)
    expect(restored.end.incomplete).toEqual([
      {
        what: 'what was uploaded',
        why: expect.stringMatching(new RegExp(`${hashes[2]} (has the wrong size|is damaged)`)),
      },
    ])
    expect(await Promise.all(hashes.map((hash) => restored.artifacts.isWhole(hash)))).toEqual([true, true, false])
  })

  test('may be read by any tar, and holds no key', async () => {
    const place = await newInstallation()
    await addServer(place)
    const file = await backUp(place)
    const listed = execFileSync('tar', ['tzf', file], { encoding: 'utf8' }).trim().split('\n')
    expect(listed[0]).toBe('head.json')
    expect(listed.at(-1)).toBe('end.json')
    expect(listed.some((path) => path.length > 255 && path.endsWith('/index.js'))).toBe(true)
    const bytes = gunzipSync(await readFile(file))
    for (const encoding of ['base64', 'hex', 'latin1'] as const) {
      expect(bytes.includes(Buffer.from(place.keys[0].toString(encoding), 'latin1'))).toBe(false)
    }
  })

  test('needs no key where the key is a file of the place itself', async () => {
    const place = { ...(await newInstallation()), ownsKey: true }
    const file = await backUp(place)
    expect((await checkArchive(file, null, (await migrationsOf()).all)).key).toEqual(place.keys[0])
    await expect(restoreTo(file, [randomBytes(32)])).rejects.toThrow('is not the key of this archive')
  })
})

describe('an archive is refused, and nothing is touched,', () => {
  test('with another key, without a key, or without an old one that it needs', async () => {
    const place = await newInstallation()
    const old = randomBytes(32)
    const file = await backUp({ ...place, keys: [...place.keys, old] })
    await expect(restoreTo(file, [randomBytes(32)])).rejects.toThrow(
      /^SECRETS_KEY is not the key of this archive: that one has the fingerprint \w{16}, and given is \w{16}\.$/,
    )
    await expect(restoreTo(file, null)).rejects.toThrow(/^The archive needs its SECRETS_KEY/)
    await expect(restoreTo(file, place.keys)).rejects.toThrow(/SECRETS_KEY_OLD/)
    // Rotated since: what was the key is an old one now.
    await checkArchive(file, [randomBytes(32), old, ...place.keys], (await migrationsOf()).all)
  })

  test('when it is cut short, or a byte of it is another', async () => {
    const place = await newInstallation()
    await place.ready()
    const file = await backUp(place)
    const { all } = await migrationsOf()
    const whole = await readFile(file)
    const look = async (bytes: Buffer) => {
      await writeFile(file, bytes)
      return checkArchive(file, place.keys, all)
    }
    for (let part = 0; part < 40; part++) {
      const short = whole.subarray(0, Math.floor((whole.length * part) / 40))
      await expect(look(short)).rejects.toThrow(/^The archive is (cut short|damaged)\.$/)
    }
    const plain = gunzipSync(whole)
    for (let at = 5000; at < plain.length - 1024; at += 977) {
      const bytes = Buffer.from(plain)
      bytes[at]! ^= 1
      // Padding says nothing, and nothing of it is restored.
      const padding = plain[at] === 0 && plain[at - 1] === 0 && plain[at + 1] === 0
      if (!padding) await expect(look(gzipSync(bytes)), `byte ${at}`).rejects.toThrow()
    }
    // Cut at an entry and packed anew, so that no stream ends too early.
    const ended = Buffer.concat([plain.subarray(0, plain.lastIndexOf('end.json')), Buffer.alloc(1024)])
    await expect(look(gzipSync(ended))).rejects.toThrow('The archive is cut short.')
    await expect(look(Buffer.from('no archive at all'))).rejects.toThrow('The archive is damaged.')
    await look(whole)
  })

  test('when it is of a newer version', async () => {
    const place = await newInstallation()
    await query(
      place.databaseUrl,
      `INSERT INTO _prisma_migrations (id, checksum, migration_name, finished_at) VALUES ('x', 'x', '29990101_later', now())`,
    )
    await expect(restoreTo(await backUp(place), place.keys)).rejects.toThrow(
      'The archive was made by a newer version of Berth: it has 29990101_later.',
    )
  })
})

describe('an archive of an older schema', () => {
  test('is restored as it was, with all partitions and nothing that is not of Berth, and then migrated', async () => {
    const place = await newInstallation()
    const bound = (month: number) => `FROM ('2026-0${month}-01') TO ('2026-0${month + 1}-01')`
    const monthly = {
      name: '29990101000000_monthly',
      checksum: 'monthly',
      sql: `CREATE TABLE monthly (at TIMESTAMPTZ NOT NULL, twice INT GENERATED ALWAYS AS (1 + 1) STORED) PARTITION BY RANGE (at);
        CREATE TABLE monthly_1 PARTITION OF monthly FOR VALUES FROM (MINVALUE) TO ('2026-03-01');
        INSERT INTO monthly (at) VALUES ('2026-01-02 03:04:05+05')`,
    }
    const later = {
      name: '29990202000000_later',
      checksum: 'later',
      sql: `CREATE TABLE shout AS SELECT upper(name) AS name FROM account`,
    }
    await query(
      place.databaseUrl,
      // As if the migration had been applied two months before.
      `${monthly.sql.replace('2026-03', '2026-02')}; CREATE TABLE monthly_2 PARTITION OF monthly FOR VALUES ${bound(2)};
      INSERT INTO monthly (at) VALUES ('2026-02-03'); CREATE TABLE of_others AS SELECT 1 AS one;
      INSERT INTO _prisma_migrations (id, checksum, migration_name, finished_at) VALUES ('x', 'monthly', '${monthly.name}', now())`,
    )
    const { of_others, ...ours } = await contentOf(place.databaseUrl)
    const migrations = await migrationsOf([...(await readMigrationFiles()), monthly, later])
    const { databaseUrl, end } = await restoreTo(await backUp(place), place.keys, migrations)
    const { shout, ...restored } = await contentOf(databaseUrl)
    expect(restored).toEqual(ours)
    expect(shout).toEqual([{ t: '(ONE)' }])
    expect(of_others).toHaveLength(1)
    expect(end.incomplete).toEqual([{ what: 'the table of_others', why: 'it is not part of Berth' }])
  })
})

test('an archive of the version before events had months is restored with its events in the months of today', async () => {
  const place = await newInstallation()
  const databaseUrl = await emptyDatabase()
  await migrate(databaseUrl, '20261117')
  await query(
    databaseUrl,
    `INSERT INTO account (id, name, created_at) VALUES ('acc_1', 'one', now());
    INSERT INTO event (id, account_id, type, actor, subject, data, created_at) SELECT 'evt_0' || n, 'acc_1', 'project.created', 'system',
      'prj_' || n, '{"b": 1, "a": 2}', now() FROM generate_series(1, 3) n`,
  )
  const restored = await restoreTo(await backUp({ ...place, databaseUrl }), place.keys)
  const events = (url: string) => query(url, 'SELECT id, seq, xid, data::text FROM event ORDER BY xid, seq')
  expect(await events(restored.databaseUrl)).toHaveLength(3)
  expect(await events(restored.databaseUrl)).toEqual(await events(databaseUrl))
  const names = [...(await readMigrationFiles()), ...(await readFunctionFiles())].map(({ name }) => name).sort()
  const applied = await query<{ name: string }>(
    restored.databaseUrl,
    'SELECT migration_name AS name FROM _prisma_migrations ORDER BY 1',
  )
  expect(applied.map(({ name }) => name)).toEqual(names)
})

describe('a restore', () => {
  test('refuses a database that is not empty, and leaves an empty one empty when it fails', async () => {
    const place = await newInstallation()
    await place.ready()
    const file = await backUp(place)
    const [filled, empty] = [await emptyDatabase(), await emptyDatabase()]
    await query(filled, 'CREATE TABLE something AS SELECT 1')
    const target = { ...place, dataDir: await newDirectory(), migrations: await migrationsOf() }
    await expect(restoreArchive(file, place.keys[0], { ...target, databaseUrl: filled })).rejects.toThrow(
      'The database is not empty',
    )
    // The place has these blobs already, so the restore fails when all rows are loaded.
    await expect(restoreArchive(file, place.keys[0], { ...target, databaseUrl: empty })).rejects.toThrow(
      /appears twice/,
    )
    expect(await query(empty, `SELECT FROM pg_class WHERE relnamespace = 'public'::regnamespace`)).toEqual([])
  })
})

describe('a backup', () => {
  test('notes a deployment whose files are missing or damaged, and goes on', async () => {
    const place = await newInstallation()
    const ids = [await place.ready(), await place.ready(), await place.ready(), await place.ready()]
    const fileOf = async (id: string) =>
      place.artifacts.pathOf((await place.artifacts.read(id))!.files['index.html']!.hash)
    await rm(await fileOf(ids[0]!))
    await truncate(await fileOf(ids[1]!), 3)
    const damaged = await open(await fileOf(ids[2]!), 'r+')
    await damaged.write('X', 0)
    await damaged.close()
    await rm(join(place.dataDir, 'artifacts/manifests', `${ids[3]}.json`))
    const { deployments, incomplete } = await writeBackup(place, join(await newDirectory(), 'backup'), never)
    expect(deployments).toBe(4)
    expect(incomplete.map(({ what, why }) => `${what} ${why.replace(/artifacts\S+/, 'blob')}`)).toEqual([
      `${ids[0]} blob is missing`,
      `${ids[1]} blob has the wrong size`,
      `${ids[2]} blob is damaged`,
      `${ids[3]} its manifest is missing or damaged`,
    ])
  })

  test('keeps everybody from removing files until it has ended', async () => {
    const place = await newInstallation()
    const id = await place.ready()
    const file = join(await newDirectory(), 'backup')
    const removeFiles = () => whileNoBackup(place.db, 0, () => place.artifacts.remove(id))
    const tried: boolean[] = []
    const artifacts = {
      ...place.artifacts,
      async read(deploymentId: string) {
        tried.push(await removeFiles())
        return place.artifacts.read(deploymentId)
      },
    }
    expect(await writeBackup({ ...place, artifacts }, file, never)).toMatchObject({ incomplete: [] })
    expect(tried).toEqual([false])
    await until(removeFiles)
    expect(await place.artifacts.read(id)).toBeNull()
  })

  test('keeps the files of a deployment that is deleted meanwhile: their removal is postponed', async () => {
    const place = await newInstallation()
    const id = await place.ready()
    const manifest = join(place.dataDir, 'artifacts/manifests', `${id}.json`)
    const connection = await connectAlone(place.databaseUrl)
    await lockArtifacts(connection.db, {})
    const caches = { removeProject: async () => {} } as unknown as Parameters<typeof createReapHandler>[2]
    const reap = createReapHandler(place.db, place.artifacts, caches)
    const run = () => reap.run({ deploymentIds: [id] }, { attempt: 1, signal: never, async requireHeld() {} })
    await expect(run()).rejects.toThrow(Postponed)
    expect(existsSync(manifest)).toBe(true)
    await connection.close()
    await run()
    expect(existsSync(manifest)).toBe(false)
  })

  test('is the only one of its database, and replaces a file only when it is whole', async () => {
    const place = await newInstallation()
    await place.ready()
    const file = join(await newDirectory(), 'backup')
    await writeFile(file, 'the one before')
    const connection = await connectAlone(place.databaseUrl)
    await connection.client.query(`SELECT pg_advisory_lock(hashtextextended('berth backup', 0))`)
    await expect(writeBackup(place, file, never)).rejects.toThrow('Another backup is in progress.')
    await connection.close()
    await expect(writeBackup(place, file, AbortSignal.abort())).rejects.toThrow('The backup was interrupted')
    expect(await readFile(file, 'utf8')).toBe('the one before')
    expect(await readdir(dirname(file))).toEqual(['backup'])
    await until(() => writeBackup(place, file, never).catch(() => null))
    await checkArchive(file, place.keys, (await migrationsOf()).all)
    expect(await readdir(dirname(file))).toEqual(['backup'])
  })

  test('that loses its connection fails and leaves nothing', async () => {
    const place = await newInstallation()
    const id = await place.ready()
    const file = join(await newDirectory(), 'backup')
    const artifacts = {
      ...place.artifacts,
      async read(deploymentId: string) {
        // All rows are read by now; only the lock on the artifacts is still needed.
        await query(
          place.databaseUrl,
          `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query = 'COMMIT'`,
        )
        await until(async () => (await advisoryLocks(place.databaseUrl)).length === 0)
        return place.artifacts.read(deploymentId)
      },
    }
    expect(id).toMatch(/^dpl_/)
    await expect(writeBackup({ ...place, artifacts }, file, never)).rejects.toThrow(
      'The connection to the database was lost',
    )
    expect(await readdir(dirname(file))).toEqual([])
  })

  test('of a database that is not of Berth is refused', async () => {
    const place = await newInstallation()
    const databaseUrl = await emptyDatabase()
    const file = join(await newDirectory(), 'backup')
    await expect(writeBackup({ ...place, databaseUrl }, file, never)).rejects.toThrow('There is nothing to back up')
    await expect(writeBackup(place, join(file, 'below'), never)).rejects.toThrow(/cannot be written/)
  })

  test('for which there is no room says so and leaves nothing', async ({ skip }) => {
    const directory = await newDirectory()
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', directory], { stdio: 'ignore' })
    } catch {
      skip('a small disk can be had by root alone')
    }
    try {
      const place = await newInstallation()
      const content = randomBytes(200_000)
      const stored = await place.artifacts.store('a.bin', content.length, [content])
      const manifest = {
        version: 1,
        kind: 'static',
        files: { 'a.bin': stored },
        spaFallback: false,
        cleanUrls: true,
      } as const
      await place.artifacts.publish(await place.ready(), manifest)
      const file = join(directory, 'backup')
      await expect(writeBackup(place, file, never)).rejects.toThrow(
        `There is no room for ${file}; nothing was written.`,
      )
      expect(await readdir(directory)).toEqual([])
    } finally {
      execFileSync('umount', [directory])
    }
  })
})
