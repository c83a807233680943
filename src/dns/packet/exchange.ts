// Sends a query to a DNS server over UDP or TCP, and waits for the answer.
import { createSocket } from 'node:dgram'
import { connect, isIPv6 } from 'node:net'
import { frame, isAnswerTo, unframe } from './message.ts'

export type Server = { host: string; port: number }

/** Why there is no answer. `refused`: nothing listens there. */
export type ExchangeFailure = 'timeout' | 'refused' | 'unreachable' | 'malformed'

export type ExchangeOptions = {
  timeoutMs: number
  /** Over UDP, resends the query once after this time, because datagrams get lost. */
  resendMs?: number
  /** Ends the exchange; the promise then rejects with its reason. */
  signal?: AbortSignal
}

type Finish = (result: Buffer | ExchangeFailure) => void
/** Sends the query, and returns a function that stops. `finish` may be called more than once; the first call counts. */
type Transport = (server: Server, query: Buffer, options: ExchangeOptions, finish: Finish) => () => void

const failureOf = (error: Error): ExchangeFailure =>
  (error as NodeJS.ErrnoException).code === 'ECONNREFUSED' ? 'refused' : 'unreachable'

const overUdp: Transport = ({ host, port }, query, { resendMs }, finish) => {
  // A socket per query, so that its port is as hard to guess as its id.
  const socket = createSocket(isIPv6(host) ? 'udp6' : 'udp4')
  let closed = false
  const send = () => closed || socket.send(query, (error) => error && finish(failureOf(error)))
  const resend = resendMs === undefined ? undefined : setTimeout(send, resendMs)
  socket.on('error', (error) => finish(failureOf(error)))
  // Ignores a packet that doesn't match the query; the right one may still come.
  socket.on('message', (packet) => isAnswerTo(packet, query) && finish(packet))
  // A connected socket only receives from this server, and gets an error if nothing listens there.
  socket.connect(port, host, (error?: Error) => (error ? finish(failureOf(error)) : send()))
  return () => {
    closed = true
    clearTimeout(resend)
    socket.close()
  }
}

const overTcp: Transport = ({ host, port }, query, _options, finish) => {
  const socket = connect(port, host)
  let received = Buffer.alloc(0)
  socket.on('error', (error) => finish(failureOf(error)))
  socket.on('end', () => finish('malformed'))
  socket.on('data', (chunk) => {
    received = Buffer.concat([received, chunk])
    const packet = unframe(received)
    if (packet) finish(isAnswerTo(packet, query) ? packet : 'malformed')
  })
  socket.write(frame(query))
  return () => {
    socket.removeAllListeners()
    // Without a listener, a late connection error would end the process.
    socket.on('error', () => {})
    socket.destroy()
  }
}

function exchange(
  start: Transport,
  server: Server,
  query: Buffer,
  options: ExchangeOptions,
): Promise<Buffer | ExchangeFailure> {
  const { timeoutMs, signal } = options
  signal?.throwIfAborted()
  return new Promise((resolve, reject) => {
    let ended = false
    let stop = () => {}
    const end = (settle: () => void) => {
      if (ended) return
      ended = true
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
      stop()
      settle()
    }
    const finish: Finish = (result) => end(() => resolve(result))
    const abort = () => end(() => reject(signal!.reason))
    const timer = setTimeout(finish, timeoutMs, 'timeout')
    signal?.addEventListener('abort', abort)
    try {
      stop = start(server, query, options, finish)
    } catch {
      // Invalid address or port.
      finish('unreachable')
    }
    if (ended) stop()
  })
}

/** Never rejects because of a server's behaviour. */
export async function exchangeOverUdp(server: Server, query: Buffer, options: ExchangeOptions) {
  return exchange(overUdp, server, query, options)
}

export async function exchangeOverTcp(server: Server, query: Buffer, options: ExchangeOptions) {
  return exchange(overTcp, server, query, options)
}
