// The hostile bytes of `npm run bench -- hostile`, given to the parsers themselves: none takes many more steps than plain ones.
// Steps are counted, not timed, so that the same holds on every machine.
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { createSecureContext } from 'node:tls'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Child, startChild } from '../../bench/children.ts'
import {
  documents,
  messages,
  output,
  type Payloads,
  written,
  zoneFiles,
  zoneText,
} from '../../bench/hostile/payloads.ts'
import type { Order } from '../../bench/hostile/sender.ts'
import { surfaces } from '../../bench/hostile/shapes.ts'
import type { Target } from '../../bench/hostile/surface.ts'
import { createConnectionShares } from '../../src/platform/database/connection-shares.ts'
import { quotas } from '../../src/schemas/quotas.ts'
import type { CertificateStore } from '../../src/tls/store.ts'
import { counted, stepsOf } from '../helpers/steps/steps.ts'
import { createAuthority } from '../tls/authority.ts'

const bytes = 32 << 10
const most = 10

const { createOutput } = await counted<typeof import('../../src/engines/servers/instance/output.ts')>(
  'src/engines/servers/instance/output.ts',
)
const { readZoneFileInSteps } = await counted<typeof import('../../src/dns/zone-files/zone-file-reader.ts')>(
  'src/dns/zone-files/zone-file-reader.ts',
)
const { decodeQuery, emptyQuery } =
  await counted<typeof import('../../src/dns/packet/query.ts')>('src/dns/packet/query.ts')
const { parseJson } = await counted<typeof import('../../src/platform/http/json-pieces.ts')>(
  'src/platform/http/json-pieces.ts',
)

function ofPayloads<Payload>(what: string, payloads: Payloads<Payload>, parse: (payload: Payload) => unknown): void {
  describe(what, async () => {
    const plain = await stepsOf(() => parse(payloads.plain))
    test.each(Object.keys(payloads.shapes))('%s', async (shape) => {
      expect(await stepsOf(() => parse(payloads.shapes[shape]!))).toBeLessThan(most * plain)
    })
  })
}

ofPayloads('what a server prints', output, (lines) => {
  const printed = createOutput({ write: async () => {} }, { bytesPerMinute: 1 << 20, bytes: 10 << 20 })
  printed.print('stdout', written(lines, bytes))
  printed.endRun()
})

ofPayloads('a zone file', zoneFiles, (line) => {
  const steps = readZoneFileInSteps(zoneText(line, bytes), 'example.com', quotas.recordsPerZone.max)
  while (!steps.next().done);
})

// Each is parsed as often as its bytes allow.
ofPayloads('a DNS message', messages, (make) => {
  const message = make('www.example.com')
  for (let sent = 0; sent < bytes; sent += message.length + 2) decodeQuery(message, emptyQuery())
})

ofPayloads('a body of JSON', documents, (text) =>
  Promise.resolve(parseJson(written(text, bytes))).catch(() => {
    // Refused, after whatever it took to find out.
  }),
)

// What Node's own parsers hand over is counted in servers, and sent from another process, whose steps don't count.
const { startLiar } = await counted<typeof import('../engines/servers/liars.ts')>('test/engines/servers/liars.ts')
const { CountedRequest } = await counted<typeof import('../../src/platform/http/request-intake.ts')>(
  'src/platform/http/request-intake.ts',
)
const { Http1Response } = await counted<typeof import('../../src/engines/edge/answer/responses.ts')>(
  'src/engines/edge/answer/responses.ts',
)
const { createHttpsServer } = await counted<typeof import('../../src/engines/edge/serve/https.ts')>(
  'src/engines/edge/serve/https.ts',
)

describe('over the network', () => {
  const host = 'server.test'
  let sender: Child
  let liar: Awaited<ReturnType<typeof startLiar>>
  let https: ReturnType<typeof createHttpsServer>
  let target: Target
  beforeAll(async () => {
    liar = await startLiar()
    // The program reads a request to its end.
    const ends = new WeakMap<Socket, string>()
    liar.answer((socket, text) => {
      if (text.startsWith('GET ')) ends.set(socket, '\r\n\r\n')
      if (text.startsWith('POST ')) ends.set(socket, /^content-length/im.test(text) ? 'x' : '0\r\n\r\n')
      if (text.endsWith(ends.get(socket)!)) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
    })
    const { chain, key } = await (await createAuthority()).issue([host])
    const context = createSecureContext({ cert: chain, key })
    https = createHttpsServer({
      certificates: { contextOf: () => context } as Partial<CertificateStore> as CertificateStore,
      handle: liar.handle,
      upgrade: (_request, socket) => socket.destroy(),
      http1: { IncomingMessage: CountedRequest, ServerResponse: Http1Response } as object,
      plain: { firstTimeoutMs: 10_000, nextTimeoutMs: 10_000, answer: () => false },
      shares: createConnectionShares(),
      log: pino({ level: 'silent' }),
    })
    const http = { edgePort: liar.port, apiPort: liar.port }
    const ports = { ...http, httpsPort: await https.listen(0, '127.0.0.1'), dnsPort: 0 }
    target = { ...ports, token: '', dnsName: '', zone: host, server: host, sites: {}, bytes }
    sender = await startChild(join(import.meta.dirname, '../../bench/hostile/sender.ts'), {})
  })
  afterAll(async () => {
    await sender?.stop()
    await https?.close(0)
    await liar?.stop()
  })

  describe.each(['request heads', 'requests on one connection', 'HTTP/2 frames'])('%s', (surface) => {
    const send = (shape: string | null) =>
      stepsOf(() => sender.ask({ surface, shape, target, seconds: 0, everyMs: null } satisfies Order))
    let plain: number
    beforeAll(async () => {
      plain = await send(null)
    })
    test.each(Object.keys(surfaces[surface]!.shapes))('%s', async (shape) => {
      expect(await send(shape)).toBeLessThan(most * plain)
    })
  })
})
