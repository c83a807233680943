// Snapshots on disk: whole or refused, never in the way of a start, and written at a bounded rate.
import { mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { pino } from 'pino'
import { Registry } from 'prom-client'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createSnapshots, type SnapshotsOptions, snapshotReadiness } from '../../src/platform/database/snapshots.ts'
import { writeSealed } from '../../src/platform/files/sealed-file.ts'
import { createVault } from '../../src/platform/secrets/secrets.ts'
import { until } from '../helpers/until.ts'

const key = Buffer.alloc(32, 1)
const vault = createVault(key)
let directory: string
let lines: string[]
let registry: Registry
let log: SnapshotsOptions['log']

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-snapshots-'))
  lines = []
  registry = new Registry()
  const sink = new Writable({
    write(chunk, _encoding, done) {
      lines.push(String(chunk))
      done()
    },
  })
  log = pino({ level: 'info' }, sink)
})
afterEach(() => rm(directory, { recursive: true, force: true }))

const quick = { collectMs: 0, pauseMs: 0 }
const open = (options: Partial<SnapshotsOptions> = {}) =>
  createSnapshots({ directory, vault, log, ...quick, ...options })

type Row = { name: string; text?: string }

/** What a start finds; null if nothing that can be used. */
async function found(options: Partial<SnapshotsOptions> = {}, what = 'zones'): Promise<Row[] | null> {
  let rows: Row[] | null = null
  const kept = open(options).open(what, () => [])
  const restored = await kept.restore<Row>((found) => {
    rows = found
  })
  expect(restored).toBe(rows !== null)
  await kept.close()
  return rows
}

async function write(rows: Iterable<Row>, options: Partial<SnapshotsOptions> = {}): Promise<void> {
  const kept = open(options).open('zones', () => rows)
  kept.current()
  await kept.close()
}

const path = () => join(directory, 'zones')
const rows: Row[] = Array.from({ length: 3000 }, (_, i) => ({ name: `zone-${i}.test`, text: 'é'.repeat(i % 500) }))

describe('a file', () => {
  test('gives back what was written, in any number of blocks, and is closed to others', async () => {
    for (const some of [[], rows.slice(0, 1), rows]) {
      await write(some)
      expect(await found()).toEqual(some)
    }
    expect((await stat(path())).mode & 0o777).toBe(0o600)
    expect(await readdir(directory)).toEqual(['zones'])
    expect((await readFile(path())).includes('zone-1')).toBe(false)
  })

  test('that is cut short anywhere, or has one bit changed, is refused with one line', async () => {
    await write(rows)
    const whole = await readFile(path())
    const places = [0, 5, 12, 13, 15, 20, 40, whole.length >> 1, whole.length - 60, whole.length - 1]
    for (const place of places) {
      await writeFile(path(), whole.subarray(0, place))
      expect([place, (await found())?.length]).toEqual([place, undefined])
      const changed = Buffer.from(whole)
      changed[place]! ^= 1
      await writeFile(path(), changed)
      expect([place, (await found())?.length]).toEqual([place, undefined])
    }
    expect(lines.filter((line) => line.includes('cannot be used'))).toHaveLength(2 * places.length)
  })

  test('whose blocks were moved, left out, or taken from an earlier file is refused', async () => {
    await write(rows)
    const earlier = blocksOf(await readFile(path()))
    await write(rows)
    const [head, ...blocks] = blocksOf(await readFile(path()))
    expect(blocks.length).toBeGreaterThan(3)
    const [first, second, ...rest] = blocks
    for (const mixed of [
      [second!, first!, ...rest],
      [second!, ...rest],
      [earlier[1]!, second!, ...rest],
      [first!, second!, ...rest.slice(0, -1)],
    ]) {
      await writeFile(path(), Buffer.concat([head!, ...mixed]))
      expect(await found()).toBeNull()
    }
    await writeFile(path(), Buffer.concat([head!, ...blocks]))
    expect(await found()).toEqual(rows)
  })

  test('of another key, table or version, or a week old, is refused; one of an old key is not', async () => {
    await write(rows)
    const other = Buffer.alloc(32, 2)
    expect(await found({ vault: createVault(other) })).toBeNull()
    expect(await found({ vault: createVault(other, [key]) })).toEqual(rows)
    await writeFile(join(directory, 'hosts'), await readFile(path()))
    expect(await found({}, 'hosts')).toBeNull()
    const file = { path: path(), vault, maxBytes: 1 << 20 }
    const dayMs = 86_400_000
    for (const [version, days, usable] of [
      [1, 6.9, true],
      [1, 7.1, false],
      [2, 0, false],
    ] as const) {
      const at = new Date(Date.now() - days * dayMs).toISOString()
      await writeSealed(file, { version, what: 'zones', at }, [])
      expect([version, days, (await found()) !== null]).toEqual([version, days, usable])
    }
  })

  test('that is missing, a directory or larger than the bound is no snapshot', async () => {
    expect(await found()).toBeNull()
    expect(lines).toEqual([])
    await write(rows)
    expect(await found({ maxBytes: 1000 })).toBeNull()
    await rm(path())
    await write([], { directory: path() })
    expect(await found()).toBeNull()
  })
})

/** The first with everything before it. */
function blocksOf(file: Buffer): Buffer[] {
  const blocks: Buffer[] = []
  for (let start = 0, at = 13; at < file.length; start = at) {
    at += 4 + file.readUInt32BE(at)
    blocks.push(file.subarray(start, at))
  }
  return blocks
}

describe('writing', () => {
  test('that fails leaves the file before it, and is told of once, counted, and repeated', async () => {
    await write(rows.slice(0, 1))
    let large = rows
    const kept = open({ maxBytes: 10_000, registry }).open('zones', () => large)
    kept.current()
    const failures = async () => Number(/failures_total\{what="zones"\} (\d+)/.exec(await registry.metrics())?.[1] ?? 0)
    await until(async () => (await failures()) >= 3)
    expect(await found()).toEqual(rows.slice(0, 1))
    expect(lines.filter((line) => line.includes('could not be written'))).toHaveLength(1)
    large = rows.slice(0, 2)
    await until(async () => (await found())?.length === 2)
    await kept.close()
    expect(await readdir(directory)).toEqual(['zones'])
  })

  test('begins when memory equals the database for the first time, and never with a part of it', async () => {
    await write(rows)
    const kept = open().open('zones', () => rows.slice(0, 1))
    kept.changed(true)
    await kept.close()
    expect(await found()).toEqual(rows)
  })

  test('gathers changes: a thousand of them, one after the other, are written together', async () => {
    let writings = 0
    const kept = open({ pauseMs: 3_600_000 }).open('zones', () => {
      writings++
      return []
    })
    kept.current()
    await until(() => writings === 1)
    for (let change = 0; change < 1000; change++) {
      kept.changed()
      await new Promise(setImmediate)
    }
    expect(writings).toBe(1)
    await kept.close()
    expect(writings).toBe(2)
  })

  test('does not wait where a start must not miss the change', async () => {
    let name = 'before'
    const kept = open({ collectMs: 3_600_000, pauseMs: 3_600_000 }).open('zones', () => [{ name }])
    kept.current()
    kept.changed(true)
    await until(async () => (await found())?.[0]?.name === 'before')
    name = 'barred'
    kept.changed(true)
    await until(async () => (await found())?.[0]?.name === 'barred')
    await kept.close()
  })

  test('removes what a process that was killed has left, but not what another one writes now', async () => {
    for (const name of ['zones.a.new', 'zones.b.new', 'hosts.c.new']) await writeFile(join(directory, name), 'x')
    const old = new Date(Date.now() - 3_600_000)
    await utimes(join(directory, 'zones.a.new'), old, old)
    await write([])
    expect((await readdir(directory)).sort()).toEqual(['hosts.c.new', 'zones', 'zones.b.new'])
  })
})

test('what is served from a snapshot is told, until memory equals the database', async () => {
  await write(rows)
  const snapshots = open({ registry })
  const kept = snapshots.open('zones', () => rows)
  const readiness = snapshotReadiness(snapshots)
  expect(readiness()).toBeNull()
  await kept.restore(() => {})
  expect(readiness()).toMatch(/zones of 20/)
  expect(await registry.metrics()).toContain('berth_snapshot_in_use{what="zones"} 1')
  kept.current()
  expect(readiness()).toBeNull()
  expect(await registry.metrics()).toContain('berth_snapshot_in_use{what="zones"} 0')
  await kept.close()
})
