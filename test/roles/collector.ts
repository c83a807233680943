// A small receiver of OTLP over HTTP, in JSON as the exporter sends it; it can refuse, hang and go away.
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

export type ReceivedSpan = {
  name: string
  kind: number
  traceId: string
  spanId: string
  parentSpanId: string
  attributes: Record<string, unknown>
}

type AnyValue = {
  stringValue?: string
  intValue?: number | string
  boolValue?: boolean
  arrayValue?: { values: AnyValue[] }
}
type Attribute = { key: string; value: AnyValue }

const plainOf = ({ stringValue, intValue, boolValue, arrayValue }: AnyValue): unknown =>
  stringValue ?? boolValue ?? (intValue === undefined ? arrayValue?.values.map(plainOf) : Number(intValue))
const attributesOf = (list: Attribute[] = []) => Object.fromEntries(list.map(({ key, value }) => [key, plainOf(value)]))

export type Collector = {
  url: string
  spans: ReceivedSpan[]
  resources: Record<string, unknown>[]
  /** Everything that was received, as it came. */
  text(): string
  mode: 'take' | 'hang' | 'refuse'
  /** Requests that came, whatever became of them. */
  requests: number
  close(): Promise<void>
}

export async function startCollector(): Promise<Collector> {
  let text = ''
  const server: Server = createServer(async (request, response) => {
    collector.requests++
    if (collector.mode === 'hang') return
    let body = ''
    for await (const chunk of request) body += chunk
    if (collector.mode === 'refuse') return void response.writeHead(400).end('{}')
    text += body
    for (const { resource, scopeSpans } of JSON.parse(body).resourceSpans) {
      collector.resources.push(attributesOf(resource.attributes))
      for (const { spans } of scopeSpans) {
        for (const { attributes, parentSpanId = '', ...span } of spans) {
          collector.spans.push({ ...span, parentSpanId, attributes: attributesOf(attributes) })
        }
      }
    }
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const collector: Collector = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans: [],
    resources: [],
    text: () => text,
    mode: 'take',
    requests: 0,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return collector
}
