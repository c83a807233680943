import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterEach, expect, test, vi } from 'vitest'
import { jobs } from '../../src/commands/jobs.ts'
import { loadConfig } from '../../src/config.ts'
import { createDatabase } from '../helpers/database.ts'

afterEach(() => vi.restoreAllMocks())

test('jobs that were given up are listed, run again and deleted', async () => {
  const database = await createDatabase()
  const dataDir = await mkdtemp(join(tmpdir(), 'berth-jobs-'))
  const config = loadConfig({ DATABASE_URL: database.url, DATA_DIR: dataDir })
  const client = new pg.Client(database.url)
  await client.connect()
  const printed: string[] = []
  vi.spyOn(console, 'log').mockImplementation((line: string) => void printed.push(line))
  const ask = async (verb: string, ids: string[] = [], json = false) => {
    printed.length = 0
    await jobs(config, verb, ids, json)
    return printed.join('\n')
  }
  try {
    expect(await ask('list')).toBe('No job has failed.')
    await client.query(
      `INSERT INTO job (kind, key, payload, attempts, last_error, failed_at) VALUES
        ('verify', 'dom_1', '{"domainId": "dom_1"}', 5, E'first line\\nsecond line', '2026-01-02'),
        ('verify', 'dom_1', '{"domainId": "dom_1"}', 5, NULL, '2026-01-03'),
        ('reap', NULL, '{"deploymentIds": []}', 4, 'disk', '2026-01-04');
      INSERT INTO job (kind, payload) VALUES ('reap', '{}')`,
    )
    const verify = { kind: 'verify', key: 'dom_1', attempts: 5 }
    expect(JSON.parse(await ask('list', [], true))).toEqual([
      { id: '1', ...verify, lastError: 'first line\nsecond line', failedAt: '2026-01-02T00:00:00.000Z' },
      { id: '2', ...verify, lastError: null, failedAt: '2026-01-03T00:00:00.000Z' },
      { id: '3', kind: 'reap', key: null, attempts: 4, lastError: 'disk', failedAt: '2026-01-04T00:00:00.000Z' },
    ])
    const table = (await ask('list')).split('\n')
    expect(table.map((line) => line.split(/ {2,}/))).toEqual([
      ['ID', 'KIND', 'KEY', 'ATTEMPTS', 'FAILED', 'LAST ERROR'],
      ['1', 'verify', 'dom_1', '5', '2026-01-02T00:00:00.000Z', 'first line second line'],
      ['2', 'verify', 'dom_1', '5', '2026-01-03T00:00:00.000Z', '–'],
      ['3', 'reap', '–', '4', '2026-01-04T00:00:00.000Z', 'disk'],
    ])
    // Both were the same work, so one job is left of them; and one that has not failed is nobody's to discard.
    expect(await ask('retry', ['1', '2'])).toBe('Job 1 is queued again.\nJob 2 is queued again.')
    await expect(ask('discard', ['4'])).rejects.toThrow('There is no failed job 4.')
    await expect(ask('retry', ['3; DROP'])).rejects.toThrow('is not a job id')
    await expect(ask('retry')).rejects.toThrow('Use berth jobs list')
    expect(await ask('discard', ['all'])).toBe('Job 3 is deleted.')
    const { rows } = await client.query('SELECT kind, key, attempts, failed_at FROM job ORDER BY id')
    expect(rows).toEqual([
      { kind: 'reap', key: null, attempts: 0, failed_at: null },
      { kind: 'verify', key: 'dom_1', attempts: 0, failed_at: null },
    ])
  } finally {
    await client.end()
    await database.drop()
    await rm(dataDir, { recursive: true })
  }
})
