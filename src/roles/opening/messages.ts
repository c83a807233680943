// What the primary process of `--workers` and its worker processes tell each other.
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
  /** Worker processes of the server, which share what is configured for it. */
  count: number
  /** Also where the primary runs the database itself. */
  databaseUrl: string
  /** By which the worker shares limits, known to the primary so that it can tell of its death. */
  member: string
  /** In base64, as all octets here: messages are JSON. */
  ticketKey: string
  /** One worker keeps last-good snapshots for all. */
  keepsSnapshots: boolean
  drained: boolean
}

export type Answers = { metrics: Metrics; health: HealthReport }

export type ToWorker =
  | Start
  | { kind: 'ticketKey'; key: string }
  /** The operator drains the node, or no longer. */
  | { kind: 'drained'; drained: boolean }
  /** `replaced`: another worker has its place already. */
  | { kind: 'stop'; drain: boolean; replaced: boolean }
  | { kind: 'ask'; id: number; what: keyof Answers; role: string | undefined }

export type FromWorker =
  | { kind: 'ready' }
  /** From time to time, for the row of the node. */
  | { kind: 'load'; load: Load }
  | { kind: 'answer'; id: number; value: Answers[keyof Answers] }
  /** Sent before it leaves, so that nothing it counted is lost. */
  | { kind: 'last'; metrics: Metrics }
