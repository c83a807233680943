// What a process is called, and how it runs, stops and reports.
import { availableParallelism, hostname } from 'node:os'
import { Type } from '@sinclair/typebox'
import { Port, type Refuse, Text, type Values } from './variables.ts'

export const nodeVariables = {
  REGION: Text('local-1'),
  METRICS_PORT: Port(9090),
  WORKERS: Type.String({ pattern: '^(auto|\\d{1,3})$', default: '0' }),
  NODE_NAME: Text(),
  NODE_ADDRESS: Text(),
  DRAIN_SECONDS: Type.Integer({ minimum: 0, maximum: 3600, default: 5 }),
  OTEL_EXPORTER_OTLP_ENDPOINT: Text(),
  LOG_LEVEL: Type.Union(
    ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'].map((level) => Type.Literal(level)),
    { default: 'info' },
  ),
  LOG_FORMAT: Type.Optional(Type.Union([Type.Literal('json'), Type.Literal('pretty')])),
  NO_COLOR: Text(),
}

type Environment = Values<typeof nodeVariables> & { DATABASE_URL: string }

export function nodeSettings(env: Environment, refuse: Refuse) {
  if (env.OTEL_EXPORTER_OTLP_ENDPOINT && !/^https?:\/\/[^?#]+$/.test(env.OTEL_EXPORTER_OTLP_ENDPOINT)) {
    refuse('OTEL_EXPORTER_OTLP_ENDPOINT must be an http(s) URL, such as http://localhost:4318.')
  }
  return {
    region: env.REGION,
    metricsPort: env.METRICS_PORT,
    /** Worker processes for api and edge; 0: none. */
    workers: workerCount(env.WORKERS),
    /** The node's name, which all processes of a machine share. */
    nodeName: env.NODE_NAME || hostname(),
    /** Where others reach this machine; null: not published. */
    nodeAddress: env.NODE_ADDRESS || null,
    /** How long a process serves after SIGTERM, so that load balancers notice that it shuts down. */
    drainSeconds: env.DRAIN_SECONDS,
    /** Base URL of the trace collector; null: no traces. */
    tracesEndpoint: env.OTEL_EXPORTER_OTLP_ENDPOINT || null,
    logLevel: env.LOG_LEVEL,
    /** Null: `pretty` on a terminal. */
    logFormat: env.LOG_FORMAT ?? null,
    colour: env.NO_COLOR === '',
    /** With the embedded database, somebody is trying Berth at a terminal, where a line per request is noise. */
    requestLogLevel: env.DATABASE_URL ? ('info' as const) : ('debug' as const),
  }
}

/** `auto`: one for each processor that this process may use. */
export function workerCount(text: string): number {
  return text === 'auto' ? availableParallelism() : Number(text)
}
