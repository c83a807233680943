// A runner's assignments: proves each assigned instance, keeps it up, runs it on demand, or ends it.
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Database } from '../../../platform/database/database.ts'
import {
  type HeldInstance,
  type InstanceState,
  removeInstance,
  setInstanceState,
} from '../../../services/instances/index.ts'
import { keyOf } from '../instance/dial.ts'
import { ServerUnhealthy } from '../instance/failures.ts'
import type { Backend } from '../proxy/dispatcher.ts'
import type { Proof, Servers } from './servers.ts'
import type { RunState } from './supervisor.ts'

export type Assignments = {
  /** Applies the instances assigned to this node, and ends all others. */
  follow(instances: HeldInstance[]): void
  backend(key: string): Backend | null
  count(): number
  onState(key: string, state: RunState, error?: Error): void
}

type Assignment = {
  key: string
  instance: HeldInstance
  backend: Backend
  state: InstanceState
  reason: string | null
  /** Set until the deployment is READY. */
  proof: { cancel: AbortController; result: Proof | null } | null
  /** Whether it serves production, to end when another deployment takes over. */
  isKept: boolean
  isEnding: boolean
  /** Whether it gets no more requests. */
  isOver: boolean
  /** Chains the reports, because two at once might be written in the wrong order. */
  reports: Promise<void>
}

export type AssignmentsOptions = { db: Database; servers: Servers; log: Logger; handoverMs?: number }

const defaultHandoverMs = 1_000
const surplus = 'This instance is no longer needed'

export function createAssignments({
  db,
  servers,
  log,
  handoverMs = defaultHandoverMs,
}: AssignmentsOptions): Assignments {
  const assignments = new Map<string, Assignment>()

  function report(assignment: Assignment, state: InstanceState, reason: string | null = null): void {
    assignment.state = state
    assignment.reason = reason
    // If this fails, `follow` notices the difference.
    assignment.reports = assignment.reports
      .then(() => setInstanceState(db, assignment.instance, state, reason))
      .catch(() => {})
  }

  function create(key: string, instance: HeldInstance): Assignment {
    const assignment: Assignment = {
      key,
      instance,
      backend: servers.backend(key),
      state: 'starting',
      reason: null,
      proof: null,
      isKept: false,
      isEnding: false,
      isOver: false,
      reports: Promise.resolve(),
    }
    assignments.set(key, assignment)
    return assignment
  }

  function prove(assignment: Assignment): void {
    const proof = { cancel: new AbortController(), result: null as Proof | null }
    assignment.proof = proof
    servers.prove(assignment.key, proof.cancel.signal).then(
      (result) => {
        proof.result = result
        if (result.healthy) report(assignment, 'healthy')
        else report(assignment, 'unhealthy', result.reason)
      },
      (error: Error) => {
        if (!proof.cancel.signal.aborted) report(assignment, 'unavailable', error.message)
      },
    )
  }

  /** Called when the deployment is READY. */
  function release(assignment: Assignment): void {
    const result = assignment.proof?.result
    assignment.proof = null
    if (result?.healthy) void result.release()
  }

  /** Starts an instance of production and keeps it up. */
  function keep(assignment: Assignment): void {
    if (assignment.isKept) return
    assignment.isKept = true
    servers.keep(assignment.key)
    release(assignment)
    // `onState` reports failures, and the server retries.
    servers.ready(assignment.key).catch(() => {})
  }

  /** Ends a surplus instance. Edges hear of it first, so no new requests arrive while the current ones finish. */
  async function leave(assignment: Assignment): Promise<void> {
    if (assignment.isEnding) return
    const { key, state } = assignment
    assignment.isEnding = true
    assignment.proof?.cancel.abort()
    if (state === 'healthy') {
      report(assignment, 'leaving')
      await delay(handoverMs, undefined, { ref: false })
      // Needed again since.
      if (!assignment.isOver && assignment.instance.duty !== 'surplus') {
        assignment.isEnding = false
        return report(assignment, state)
      }
    }
    // `halt` may have been called since.
    if (!assignment.isOver) {
      assignment.isOver = true
      await servers.retire(key, surplus)
      if (assignment.instance.duty === 'keep' && assignments.get(key) === assignment) return resume(assignment)
    }
    await servers.halt(key)
    assignment.isEnding = false
    await remove(assignment)
  }

  /** Production has returned to it while its last requests were finishing, for example by a rollback. */
  function resume(assignment: Assignment): void {
    assignment.isOver = false
    assignment.isEnding = false
    assignment.isKept = false
    // Reported as healthy once it is ready.
    assignment.state = 'starting'
    keep(assignment)
    servers.ready(assignment.key).then(
      () => assignment.state === 'starting' && report(assignment, 'healthy'),
      () => {},
    )
  }

  /** Another deployment serves production. If this one still gets requests at its own URL, it runs on demand. */
  async function retire(assignment: Assignment): Promise<void> {
    if (assignment.isEnding) return
    const { key } = assignment
    assignment.isEnding = true
    assignment.isKept = false
    await servers.retire(key)
    assignment.isEnding = false
    const isWanted = servers.isWanted(key) || assignment.instance.duty === 'keep'
    if (!isWanted) await remove(assignment)
  }

  /** Stops it now, even while it is leaving or retiring. */
  async function halt(assignment: Assignment): Promise<void> {
    assignment.isOver = true
    assignment.proof?.cancel.abort()
    await servers.halt(assignment.key)
    if (!assignment.isEnding) await remove(assignment)
  }

  async function remove(assignment: Assignment): Promise<void> {
    assignment.isOver = true
    await removeInstance(db, assignment.instance)
  }

  /** It was assigned to another node or deleted. */
  async function drop(assignment: Assignment): Promise<void> {
    assignments.delete(assignment.key)
    assignment.proof?.cancel.abort()
    if (!assignment.isOver) await servers.retire(assignment.key, surplus)
    await servers.halt(assignment.key)
  }

  function apply(assignment: Assignment, isNew: boolean): void {
    const { key, instance } = assignment
    if (assignment.isOver) {
      if (!assignment.isEnding) logFailure(remove(assignment), assignment)
      // Marks it immediately, without waiting for its last requests.
      else if (instance.duty === 'keep') servers.keep(key)
      return
    }
    if (assignment.state !== instance.state && !assignment.isEnding)
      report(assignment, assignment.state, assignment.reason)
    switch (instance.duty) {
      case 'prove':
        if (isNew) prove(assignment)
        break
      case 'keep':
        keep(assignment)
        break
      case 'replaced':
      case 'serve':
        if (instance.duty === 'replaced' && assignment.isKept) {
          logFailure(retire(assignment), assignment)
          break
        }
        release(assignment)
        if (isNew) servers.wake(key)
        break
      case 'surplus':
        logFailure(leave(assignment), assignment)
        break
      default:
        logFailure(halt(assignment), assignment)
    }
  }

  function logFailure(work: Promise<void>, { instance: { deploymentId } }: Assignment): void {
    work.catch((err) => log.warn({ err, deploymentId }, 'an instance could not be ended'))
  }

  return {
    follow(rows) {
      const byKey = new Map(rows.map((row) => [keyOf(row), row]))
      for (const assignment of [...assignments.values()])
        if (!byKey.has(assignment.key)) logFailure(drop(assignment), assignment)
      for (const [key, row] of byKey) {
        const known = assignments.get(key)
        const assignment = known ?? create(key, row)
        assignment.instance = row
        apply(assignment, !known)
      }
    },
    count: () => assignments.size,
    backend(key) {
      const assignment = assignments.get(key)
      return assignment && !assignment.isOver ? assignment.backend : null
    },
    onState(key, state, error) {
      const assignment = assignments.get(key)
      if (!assignment) return
      // Its build hears of it once it has run for a moment.
      if (assignment.proof && !assignment.proof.result) return
      // A leaving instance stays `leaving`, whatever its health.
      if (assignment.state === 'leaving' && state !== 'stopped') return
      if (state === 'healthy' || state === 'starting') report(assignment, state)
      else if (state === 'failed') {
        report(assignment, error instanceof ServerUnhealthy ? 'unhealthy' : 'unavailable', error!.message)
      } else if (!assignment.isKept && !assignment.isEnding && !assignment.proof)
        logFailure(remove(assignment), assignment)
    },
  }
}
