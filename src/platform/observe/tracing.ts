// Traces of requests, jobs, builds, deliveries and certificates, sent by OTLP if an endpoint is configured. It is global
// rather than a parameter, because statements that queue jobs and write events need it too.
import { AsyncLocalStorage } from 'node:async_hooks'
import { hostname } from 'node:os'
import type { Attributes, Span, SpanKind } from '@opentelemetry/api'
import type { Logger } from 'pino'
import { version } from '../version.ts'

export type SpanOptions = {
  kind?: keyof typeof SpanKind
  /** A traceparent, if the trace started elsewhere. By default, the parent is the caller's span. */
  parent?: string | null
  attributes?: Attributes
}

type Tracing = {
  start(name: string, options: SpanOptions): Span
  run<T>(span: Span, work: () => T): T
  current(): Span | undefined
  close(): Promise<void>
}

let tracing: Tracing | null = null

// Version 00 of W3C Trace Context, in which all-zero ids are invalid.
const traceparent = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}$/

/** The ids of a traceparent; null if it is invalid. Ignores flags and state, which the caller could choose at will. */
export function idsOf(text: string | string[] | null | undefined): { traceId: string; spanId: string } | null {
  const found = typeof text === 'string' ? traceparent.exec(text) : null
  return found && { traceId: found[1]!, spanId: found[2]! }
}

export const isTracing = () => tracing !== null

/** The traceparent of the caller's span, for a row that another process continues. */
export function currentTrace(): string | null {
  if (tracing === null) return null
  const context = tracing.current()?.spanContext()
  // A trace that isn't sampled here isn't continued elsewhere either.
  return context && context.traceFlags & 1 ? `00-${context.traceId}-${context.spanId}-01` : null
}

/** Runs `work` in a span that ends with it. Costs nothing without tracing. */
export function inSpan<T>(
  name: string,
  options: SpanOptions,
  work: (note: (attributes: Attributes) => void) => Promise<T>,
): Promise<T> {
  if (tracing === null) return work(() => {})
  const span = tracing.start(name, options)
  const promise = tracing.run(span, () => work((attributes) => void span.setAttributes(attributes)))
  return promise
    .catch((error) => {
      markFailed(span, error as Error)
      throw error
    })
    .finally(() => span.end())
}

/** Starts a span that the caller ends; `within` runs work inside it. */
export function startSpan(name: string, options: SpanOptions): Span | null {
  return tracing === null ? null : tracing.start(name, options)
}

export function within<T>(span: Span, work: () => T): T {
  return tracing === null ? work() : tracing.run(span, work)
}

// Only the name of an error, because messages may contain what was sent.
function markFailed(span: Span, error: Error): void {
  span.setAttributes({ 'error.type': error.name })
  // SpanStatusCode.ERROR, whose module is only loaded while tracing is on.
  span.setStatus({ code: 2 })
}

export type TracingOptions = {
  /** Base URL of the collector, such as http://localhost:4318. */
  endpoint: string
  roles: readonly string[]
  log: Logger
}

const closeTimeoutMs = 2_000
const complainEveryMs = 60_000

/**
 * Loads OpenTelemetry and starts tracing. Call the result to send what is left and stop. OpenTelemetry's own variables set
 * the rest: sampling, headers, how often spans are sent, and how many may wait before they are dropped.
 */
export async function startTracing({ endpoint, roles, log }: TracingOptions): Promise<() => Promise<void>> {
  const { ROOT_CONTEXT, SpanKind, trace } = await import('@opentelemetry/api')
  const { BasicTracerProvider, BatchSpanProcessor } = await import('@opentelemetry/sdk-trace-base')
  const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-http')
  const { resourceFromAttributes } = await import('@opentelemetry/resources')

  const url = `${endpoint.replace(/\/+$/, '')}/v1/traces`
  const exporter = new OTLPTraceExporter({ url })
  let complainedMs = Number.NEGATIVE_INFINITY
  const complain = (err: unknown) => {
    if (performance.now() - complainedMs < complainEveryMs) return
    complainedMs = performance.now()
    log.warn({ err }, 'the collector of traces does not take them; they are dropped')
  }
  const processor = new BatchSpanProcessor({
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        if (result.error) complain(result.error)
        done(result)
      }),
    shutdown: () => exporter.shutdown(),
  })
  const provider = new BasicTracerProvider({
    resource: resourceFromAttributes({
      'service.name': 'berth',
      'service.version': version,
      'service.instance.id': `${hostname()}-${process.pid}`,
      'berth.roles': [...roles],
    }),
    spanProcessors: [processor],
  })
  const tracer = provider.getTracer('berth', version)
  const spans = new AsyncLocalStorage<Span>()

  function contextOf(parent: string | null | undefined) {
    const around = parent === undefined ? spans.getStore() : undefined
    if (around) return trace.setSpan(ROOT_CONTEXT, around)
    const ids = idsOf(parent)
    return ids ? trace.setSpanContext(ROOT_CONTEXT, { ...ids, traceFlags: 1, isRemote: true }) : ROOT_CONTEXT
  }

  const started: Tracing = {
    start: (name, { kind = 'INTERNAL', parent, attributes }) =>
      tracer.startSpan(name, { kind: SpanKind[kind], ...(attributes && { attributes }) }, contextOf(parent)),
    run: (span, work) => spans.run(span, work),
    current: () => spans.getStore(),
    async close() {
      if (tracing === started) tracing = null
      const late = Promise.withResolvers<void>()
      const timer = setTimeout(late.resolve, closeTimeoutMs)
      await Promise.race([provider.shutdown().catch(() => {}), late.promise])
      clearTimeout(timer)
    },
  }
  tracing = started
  return started.close
}
