// Messages between the primary process of `--workers` and its worker processes.
import type { MetricObjectWithValues, MetricValue } from 'prom-client'
import type { HealthReport } from '../../platform/observe/health.ts'
import type { Load } from '../../services/nodes/index.ts'

/** The roles that worker processes run; all others stay in the primary. */
export const rolesOfWorkers: readonly string[] = ['api', 'edge']

export type Metrics = MetricObjectWithValues<MetricValue<string>>[]

/** The first message to a worker. */
export type Start = {
  kind: 'start'
  /** Of the whole server. */
  roles: readonly string[]
  /** The id of the server among the nodes. */
  node: string
  /** The number of worker processes, which share what is configured for the server. */
  count: number
  /** Set even if the primary runs the database itself. */
  databaseUrl: string
  /** The worker's id for shared limits. The primary knows it, so that it can report the worker's death. */
  member: string
  /** In base64, like all bytes here, because messages are JSON. */
  ticketKey: string
  /** One worker stores snapshots for all. */
  keepsSnapshots: boolean
  drained: boolean
}

export type Answers = { metrics: Metrics; health: HealthReport }

export type ToWorker =
  | Start
  | { kind: 'ticketKey'; key: string }
  /** The operator drains the node, or ends the drain. */
  | { kind: 'drained'; drained: boolean }
  /** `replaced`: another worker already has its slot. */
  | { kind: 'stop'; drain: boolean; replaced: boolean }
  | { kind: 'ask'; id: number; what: keyof Answers; role: string | undefined }

export type FromWorker =
  | { kind: 'ready' }
  /** From time to time, for the node's row. */
  | { kind: 'load'; load: Load }
  | { kind: 'answer'; id: number; value: Answers[keyof Answers] }
  /** Sent before it leaves, so that no counts are lost. */
  | { kind: 'last'; metrics: Metrics }
