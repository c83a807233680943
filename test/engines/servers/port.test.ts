// The port between machines: who is let in, who is believed to be a runner, and what reaches a server once.

import { once } from 'node:events'
import { createServer as createHttpServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { connect as connectTcp, createServer, type Server, type Socket } from 'node:net'
import { connect, createServer as createTlsServer } from 'node:tls'
import { afterEach, expect, test, vi } from 'vitest'
import { createBalancer } from '../../../src/engines/servers/balancer/balancer.ts'
import type { InstanceTable } from '../../../src/engines/servers/balancer/instance-table.ts'
import { createRunnerConnections } from '../../../src/engines/servers/balancer/runner-connections.ts'
import { createDial, heartbeatLine, keyOf, protocol } from '../../../src/engines/servers/instance/dial.ts'
import { InstanceUnreachable, ServerUnavailable } from '../../../src/engines/servers/instance/failures.ts'
import { openRunnerPort } from '../../../src/engines/servers/run/port.ts'
import type { ServedInstance } from '../../../src/services/instances/index.ts'
import { createInternalCa, type NodeCertificate, signNode } from '../../../src/tls/internal-ca.ts'
import { openLink } from '../../helpers/link.ts'
import { until } from '../../helpers/until.ts'
import { log } from './cluster.ts'

const ca = [await createInternalCa()]
const stranger = [await createInternalCa()]
const edgeCertificate = await signNode(ca, 'edge', 'edge-1')
const runnerCertificate = await signNode(ca, 'runner', 'run-1')

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

const credentialsOf = (current: NodeCertificate) => ({
  current,
  follow: (act: (certificate: NodeCertificate) => void) => act(current),
})

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => void sockets.add(socket.on('close', () => sockets.delete(socket))))
  closers.push(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

/** A runner's port whose instances are what `connect` returns. */
async function openPort(
  reach: (key: string) => Promise<Socket | null>,
  certificate = runnerCertificate,
): Promise<number> {
  const options = { host: '127.0.0.1', port: 0, credentials: credentialsOf(certificate), connect: reach, log }
  const { port, close } = await openRunnerPort(options)
  closers.push(close)
  return port
}

const instanceAt = (port: number, over: Partial<ServedInstance> = {}): ServedInstance => ({
  deploymentId: 'dpl_1',
  slot: 0,
  term: '7',
  node: 'run-1',
  address: `127.0.0.1:${port}`,
  state: 'healthy',
  ...over,
})

function dial(instance: ServedInstance, certificate = edgeCertificate, lost: string[] = []) {
  return createDial(credentialsOf(certificate), (node) => lost.push(node))(instance, keyOf(instance), 5_000)
}

/** A server that says which instance it was asked as, and gives back what it gets. */
async function echo(): Promise<(key: string) => Promise<Socket | null>> {
  const port = await listening(createServer((socket) => socket.on('error', () => {}).pipe(socket)))
  return async (key) => {
    if (key === 'dpl_1/7') return connectTcp(port, '127.0.0.1')
    if (key === 'dpl_1/8') throw new ServerUnavailable('It printed:\nnothing')
    if (key === 'dpl_1/9') throw Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })
    return null
  }
}

test('an edge is connected to the instance that it names, and told why where it is not', async () => {
  const port = await openPort(await echo())
  const socket = await dial(instanceAt(port))
  socket.write('hello')
  expect(String(await new Promise((resolve) => socket.once('data', resolve)))).toBe('hello')
  socket.destroy()
  const refused = (term: string) => dial(instanceAt(port, { term })).catch((error) => error)
  expect(await refused('6')).toMatchObject({ name: 'InstanceUnreachable', retryable: true })
  expect(await refused('8')).toMatchObject({ retryable: false, status: 503, message: 'It printed:' })
  expect(await refused('9')).toMatchObject({ retryable: false, status: 502 })
})

test.each([
  ['of another installation', signNode(stranger, 'edge', 'edge-1')],
  ["that is a runner's", signNode(ca, 'runner', 'run-2')],
  ['that is over', signNode(ca, 'edge', 'edge-1', -60_000)],
])('a certificate %s opens nothing', async (_what, made) => {
  const asked: string[] = []
  const port = await openPort(async (key) => {
    asked.push(key)
    return null
  })
  // It would believe the runner, whoever that is.
  const own = { ...(await made), ca: [...edgeCertificate.ca, stranger[0]!.certificate] }
  const error = await dial(instanceAt(port), own).catch((error) => error)
  expect(error).toBeInstanceOf(InstanceUnreachable)
  expect(asked).toEqual([])
})

test('whoever shows no certificate, or speaks another protocol, gets no byte', async () => {
  const asked: string[] = []
  const port = await openPort(async (key) => {
    asked.push(key)
    return null
  })
  const { cert, key } = edgeCertificate
  const ways = [{}, { cert, key }, { ALPNProtocols: [protocol] }, { cert, key, ALPNProtocols: ['http/1.1'] }]
  for (const way of ways) {
    const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, ...way })
    socket.on('error', () => {}).on('secureConnect', () => socket.write('dpl_1/7\n'))
    let bytes = 0
    socket.on('data', (chunk) => {
      bytes += chunk.length
    })
    await new Promise((resolve) => socket.on('close', resolve))
    expect(bytes).toBe(0)
  }
  const plain = connectTcp(port, '127.0.0.1')
  plain.on('error', () => {}).write('GET / HTTP/1.1\r\n\r\n')
  const answered = await new Promise<string>((resolve) => {
    let text = ''
    plain.setEncoding('latin1').on('data', (chunk) => (text += chunk))
    plain.on('close', () => resolve(text))
  })
  expect(answered).not.toContain('dpl')
  expect(asked).toEqual([])
})

test('a line that is too long ends the connection', async () => {
  const port = await openPort(async () => null)
  const { cert, key } = edgeCertificate
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, cert, key, ALPNProtocols: [protocol] })
  socket.on('error', () => {}).on('secureConnect', () => socket.write('x'.repeat(100_000)))
  await new Promise((resolve) => socket.on('close', resolve))
})

test.each([
  ["an edge's certificate", signNode(ca, 'edge', 'run-1')],
  ['that of another runner', signNode(ca, 'runner', 'run-2')],
  ['one of another installation', signNode(stranger, 'runner', 'run-1')],
])('who shows %s is not believed to be the runner', async (_what, made) => {
  const { cert, key } = await made
  let heard = ''
  const server = createTlsServer({ cert, key, ALPNProtocols: [protocol], requestCert: true, rejectUnauthorized: false })
  server.on('tlsClientError', () => {})
  server.on('secureConnection', (socket) => socket.on('error', () => {}).on('data', (chunk) => (heard += chunk)))
  const port = await listening(server)
  const lost: string[] = []
  const ask = () => dial(instanceAt(port), edgeCertificate, lost).catch((error) => error)
  expect(await ask()).toMatchObject({ name: 'InstanceUnreachable', retryable: true })
  expect(lost).toEqual(['run-1'])
  vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0')
  closers.push(() => vi.unstubAllEnvs())
  expect(await ask()).toMatchObject({ name: 'InstanceUnreachable', retryable: true })
  expect(heard).toBe('')
})

/** An edge on these instances; returns its port. */
async function openEdge(instances: ServedInstance[]): Promise<number> {
  const table: InstanceTable = {
    of: () => instances,
    has: (instance) => instances.includes(instance),
    request: async () => {},
    onChange() {},
    close: async () => {},
  }
  const reach = createRunnerConnections((onLost) => createDial(credentialsOf(edgeCertificate), onLost))
  const balancer = createBalancer({ table, local: null, log, limits: { waitTimeoutMs: 5_000 }, reach })
  closers.push(balancer.close)
  return listening(
    createHttpServer((request, response) => balancer.proxy(request, response, { deploymentId: 'dpl_1' })),
  )
}

function post(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const sent = request({ port, host: '127.0.0.1', method: 'POST', agent: false }, async (response) => {
      resolve(`${response.statusCode} ${Buffer.concat(await response.toArray())}`)
    })
    sent.on('error', reject)
    sent.end('x'.repeat(200_000))
  })
}

test('a request that reaches no instance is sent to another one, with its body', async () => {
  const server = await listening(
    createHttpServer(async (request, response) => {
      response.end(String(Buffer.concat(await request.toArray()).length))
    }),
  )
  const good = await openPort(async () => connectTcp(server, '127.0.0.1'))
  const gone = await openPort(async () => null)
  const free = await listening(createServer())
  await closers.pop()!()
  const port = await openEdge([
    instanceAt(free, { term: '1', node: 'run-0' }),
    instanceAt(gone, { term: '2', slot: 1 }),
    instanceAt(good, { term: '3', slot: 2 }),
  ])
  const answers = await Promise.all(Array.from({ length: 9 }, () => post(port)))
  expect(new Set(answers)).toEqual(new Set(['200 200000']))
})

test('a request that has reached a server is never sent to another one', async () => {
  let reached = 0
  const breaking = await listening(
    createServer((socket) => {
      socket
        .on('error', () => {})
        .once('data', () => {
          reached++
          socket.destroy()
        })
    }),
  )
  const runner = await openPort(async () => connectTcp(breaking, '127.0.0.1'))
  const port = await openEdge([instanceAt(runner), instanceAt(runner, { term: '8', slot: 1 })])
  expect(await post(port)).toMatch(/^502 /)
  expect(reached).toBe(1)
})

test('a runner whose machine is gone without a word gets no more requests, and those it has go to another one', async () => {
  const named = (name: string) =>
    listening(createHttpServer((request, response) => void request.resume().on('end', () => response.end(name))))
  const [first, second] = [await named('first'), await named('second')]
  const link = await openLink(`tcp://127.0.0.1:${await openPort(async () => connectTcp(first, '127.0.0.1'))}`)
  closers.push(link.close)
  const other = await openPort(async () => connectTcp(second, '127.0.0.1'), await signNode(ca, 'runner', 'run-2'))
  const port = await openEdge([
    instanceAt(Number(new URL(link.url).port), { term: '1' }),
    instanceAt(other, { term: '2', slot: 1, node: 'run-2' }),
  ])
  const visit = async () => {
    const answer = await fetch(`http://127.0.0.1:${port}/`)
    return `${answer.status} ${await answer.text()}`
  }
  const seen = new Set<string>()
  await until(async () => seen.add(await visit()).size === 2)
  // Nothing is closed: what is sent there is never answered.
  link.freeze()
  const answers = await Promise.all(Array.from({ length: 8 }, visit))
  expect(new Set(answers)).toEqual(new Set(['200 second']))
  link.thaw()
  await until(async () => (await visit()) === '200 first')
})

test('a runner gives back the bytes of a pulse, to an edge alone', async () => {
  const port = await openPort(async () => null)
  const socket = await createDial(credentialsOf(edgeCertificate), () => {})(instanceAt(port), heartbeatLine, 5_000)
  socket.write('.')
  expect(String((await once(socket, 'data'))[0])).toBe('.')
  socket.destroy()
})

test('connections that fail while the pulse of their runner is there end no other ones', async () => {
  const port = await openPort(await echo())
  const closed = await listening(createServer())
  await closers.pop()!()
  let failing = false
  let pulses = 0
  // As when this machine has no descriptors left, or so many connect at once that each of them takes too long.
  const reach = createRunnerConnections((onLost) => {
    const dial = createDial(credentialsOf(edgeCertificate), onLost)
    return async (to, line, waitMs) => {
      const socket = await dial(failing ? { ...to, address: `127.0.0.1:${closed}` } : to, line, waitMs)
      if (line === heartbeatLine) socket.on('data', () => pulses++)
      return socket
    }
  })
  closers.push(reach.close)
  const other = await reach.connect(instanceAt(port), 5_000)
  closers.push(() => other.destroy())
  await until(() => pulses > 0)
  failing = true
  await expect(reach.connect(instanceAt(port), 5_000)).rejects.toThrow(InstanceUnreachable)
  expect(reach.isLost('run-1')).toBe(false)
  other.write('hello')
  expect(String((await once(other, 'data'))[0])).toBe('hello')
})
