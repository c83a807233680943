// Asks one DNS server one question: over UDP, then over TCP if the answer does not fit. Bounded in time, never cached.
import { randomInt } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { connect, isIPv6 } from 'node:net'
import { type Answer, codes, decodeAnswer, encodeQuestion, type Type } from './message.ts'

/** Why a server could not be asked. None of these says anything about the name that was asked for. */
export type Trouble = 'timeout' | 'unreachable' | 'malformed' | 'servfail' | 'refused' | 'lame' | 'unresolved'

export type Endpoint = { host: string; port: number }

export type AskOptions = {
  recursive?: boolean
  /** Ends the check as a whole: a job that is taken away or a worker that stops. The promise then rejects. */
  signal: AbortSignal
  /** When the check must be over, by `performance.now()`. */
  deadlineMs: number
}

// A datagram may be lost, so it is sent twice; an authoritative server that takes longer is as good as away.
const answerMs = 2_000
const resendMs = 700
// A resolver may have to ask half a dozen servers first.
const recursiveAnswerMs = 4_000

type Exchange = (finish: (result: Answer | Trouble) => void) => () => void

/** Runs one exchange until it finishes, its time is over, or the check is ended. */
function bounded({ signal, deadlineMs, recursive }: AskOptions, start: Exchange): Promise<Answer | Trouble> {
  const leftMs = Math.min(recursive ? recursiveAnswerMs : answerMs, deadlineMs - performance.now())
  signal.throwIfAborted()
  if (leftMs <= 0) return Promise.resolve('timeout')
  return new Promise((resolve, reject) => {
    let close = () => {}
    const end = (settle: () => void) => {
      clearTimeout(timer)
      signal.removeEventListener('abort', abort)
      close()
      settle()
    }
    const abort = () => end(() => reject(signal.reason))
    const timer = setTimeout(() => end(() => resolve('timeout')), leftMs)
    signal.addEventListener('abort', abort)
    close = start((result) => end(() => resolve(result)))
  })
}

function read(message: Buffer, query: Buffer): Answer | Trouble | null {
  try {
    return decodeAnswer(message, query)
  } catch {
    return 'malformed'
  }
}

function overUdp({ host, port }: Endpoint, query: Buffer): Exchange {
  return (finish) => {
    const socket = createSocket(isIPv6(host) ? 'udp6' : 'udp4')
    let finished = false
    const done = (result: Answer | Trouble) => {
      if (!finished) finish(result)
      finished = true
    }
    const send = () => socket.send(query, (error) => error && done('unreachable'))
    const resend = setTimeout(send, resendMs)
    socket.on('error', () => done('unreachable'))
    socket.on('message', (message) => {
      const result = read(message, query)
      // What does not answer the question is somebody else's; the right one may still come.
      if (result) done(result)
    })
    // A connected socket hears nobody but the one it asked, from a port that nobody else can know.
    socket.connect(port, host, (error?: Error) => (error ? done('unreachable') : finished || send()))
    return () => {
      finished = true
      clearTimeout(resend)
      socket.close()
    }
  }
}

function overTcp({ host, port }: Endpoint, query: Buffer): Exchange {
  return (finish) => {
    const socket = connect(port, host)
    let received = Buffer.alloc(0)
    const done = (result: Answer | Trouble) => {
      socket.removeAllListeners('data')
      finish(result)
    }
    socket.once('error', () => done('unreachable'))
    socket.once('end', () => done('malformed'))
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk])
      const size = received.length < 2 ? Number.POSITIVE_INFINITY : received.readUInt16BE(0)
      if (received.length - 2 >= size) done(read(received.subarray(2, 2 + size), query) ?? 'malformed')
    })
    const length = Buffer.alloc(2)
    length.writeUInt16BE(query.length)
    socket.write(Buffer.concat([length, query]))
    return () => {
      socket.removeAllListeners()
      // A connection that breaks after its time would end the process without a listener.
      socket.on('error', () => {})
      socket.destroy()
    }
  }
}

/** Never rejects for what a server does or does not do. An answer is one of success or of a name that is not there. */
export async function ask(
  endpoint: Endpoint,
  name: string,
  type: Type,
  options: AskOptions,
): Promise<Answer | Trouble> {
  const query = encodeQuestion(randomInt(0x10000), name, type, options.recursive ?? false)
  let result = await bounded(options, overUdp(endpoint, query))
  if (typeof result !== 'string' && result.truncated) result = await bounded(options, overTcp(endpoint, query))
  if (typeof result === 'string') return result
  if (result.code === codes.noError || result.code === codes.noSuchName) return result.truncated ? 'malformed' : result
  return result.code === codes.servFail ? 'servfail' : 'refused'
}
