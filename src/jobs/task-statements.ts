// SQL of periodic tasks: the lease of the process that runs one, and when it is due next.
import { isFree, leaseEnd } from '../platform/database/lease.ts'
import { int4, statement, text, timestamptz } from '../platform/database/statement.ts'

const heldIn = { name: text(), worker: text() }

/**
 * Leases a due task to the process; returns no row if it isn't due or another process runs it. `now` is the database's
 * time.
 */
export const takeTask = statement('tasks.take', {
  reason: 'lease',
  in: heldIn,
  out: { now: timestamptz() },
  sql: (p) => `
    INSERT INTO task (name, due_at, leased_by, leased_until) VALUES (${p.name}, now(), ${p.worker}, ${leaseEnd()})
    ON CONFLICT (name) DO UPDATE SET leased_by = excluded.leased_by, leased_until = excluded.leased_until
    WHERE task.due_at <= now() AND ${isFree('task.leased_until')} RETURNING now() AS now`,
})

export const renewTask = statement('tasks.renew', {
  reason: 'lease',
  in: heldIn,
  out: { name: text() },
  sql: (p) => `
    UPDATE task SET leased_until = ${leaseEnd()} WHERE name = ${p.name} AND leased_by = ${p.worker} RETURNING name`,
})

export const endTask = statement('tasks.end', {
  reason: 'lease',
  in: { ...heldIn, delayMs: int4() },
  out: { name: text() },
  sql: (p) => `
    UPDATE task SET due_at = now() + ${p.delayMs} * interval '1 millisecond', leased_by = NULL, leased_until = NULL
    WHERE name = ${p.name} AND leased_by = ${p.worker} RETURNING name`,
})
