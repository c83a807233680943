import pg from 'pg'
import { expect, test, vi } from 'vitest'
import { prove } from './prove.ts'
import { holds, render } from './report.ts'

vi.setConfig({ testTimeout: 300_000 })

// `npm run prove` is the whole of it: many kills, replicas, the worker and builds among the victims, and a backup.
// It looks for processes in /proc.
test.skipIf(process.platform !== 'linux')(
  'kill -9 of the API, the worker and PostgreSQL under writes loses nothing and leaves nothing behind',
  async () => {
    const report = await prove({
      kills: 3,
      durationMs: 3_000,
      seed: 4,
      writers: 1,
      replicas: 1,
      inTurn: ['worker', 'PostgreSQL', 'api'],
      backup: false,
      async killed(victim, { environment }) {
        if (victim !== 'worker') return
        // What passes in half a minute, at once: the leases of the dead worker end.
        const client = new pg.Client({ connectionString: environment.DATABASE_URL })
        await client.connect()
        try {
          await client.query('UPDATE job SET locked_until = now() WHERE locked_until IS NOT NULL')
          await client.query('UPDATE webhook_lane SET wake_at = now() WHERE leased_by IS NOT NULL')
        } finally {
          await client.end()
        }
      },
    })
    expect(holds(report), render(report)).toBe(true)
    expect(report.rows.reduce((sum, { acknowledged }) => sum + acknowledged, 0)).toBeGreaterThan(20)
    expect([...report.kills.values()]).toEqual([1, 1, 1])
  },
)
