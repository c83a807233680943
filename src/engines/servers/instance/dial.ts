// Connects an edge to an instance on another node: mutual TLS, one line that names the instance, then raw bytes.
import { connect, createSecureContext, type SecureContext, type TLSSocket } from 'node:tls'
import type { ServedInstance } from '../../../services/instances/index.ts'
import { type NodeCertificate, nodeUri } from '../../../tls/internal-ca.ts'
import type { NodeCredentials } from '../../../tls/node-credentials.ts'
import { InstanceUnreachable } from './failures.ts'

/** The ALPN name of the protocol, versioned so that incompatible peers refuse each other. */
export const protocol = 'berth-instance/1'

/** The reply to the line that names an instance: `ok`, or why there is no connection. */
export type Reply = 'ok' | 'gone' | 'unreachable' | `unavailable ${string}`
export const maxReplyLength = 4_096

export type RunnerNode = { node: string; address: string }

/** `line` names the instance, or is `heartbeatLine`. `waitMs` is how long the instance may take to start. */
export type Dial = (to: RunnerNode, line: string, waitMs: number) => Promise<TLSSocket>

/** Sent instead of an instance's name: the runner echoes every byte. */
export const heartbeatLine = 'pulse'

export const keyOf = ({ deploymentId, term }: Pick<ServedInstance, 'deploymentId' | 'term'>) =>
  `${deploymentId}/${term}`

// Detects lost and hanging nodes. They are nearby, so a handshake takes milliseconds.
const handshakeTimeoutMs = 2_000

/** Splits `host:port`; IPv6 addresses are in brackets. */
export function splitAddress(address: string): { host: string; port: number } {
  const at = address.lastIndexOf(':')
  return { host: address.slice(0, at).replace(/^\[|\]$/g, ''), port: Number(address.slice(at + 1)) }
}

function errorOf(reply: Reply): InstanceUnreachable | null {
  if (reply === 'ok') return null
  if (reply === 'gone') return new InstanceUnreachable('The instance is on another node by now.', { retryable: true })
  if (reply === 'unreachable') return new InstanceUnreachable('Nothing listens.', { status: 502, retryable: false })
  return new InstanceUnreachable(reply.slice('unavailable '.length), { retryable: false })
}

/** `onLost` is called for nodes that can't be reached. */
export function createDial(credentials: Pick<NodeCredentials, 'current'>, onLost: (node: string) => void): Dial {
  let cached: { of: NodeCertificate; context: SecureContext } | null = null

  /** Cached per certificate, because creating a context costs as much as a handshake. */
  function contextOf(own: NodeCertificate): SecureContext {
    if (cached?.of !== own) cached = { of: own, context: createSecureContext({ ...own, minVersion: 'TLSv1.3' }) }
    return cached.context
  }

  return ({ node, address }, line, waitMs) =>
    new Promise((resolve, reject) => {
      const own = credentials.current
      if (!own)
        return reject(new InstanceUnreachable('This edge has no certificate for runners yet.', { retryable: true }))
      const expected = `URI:${nodeUri('runner', node)}`
      const socket = connect({
        ...splitAddress(address),
        secureContext: contextOf(own),
        // Overrides NODE_TLS_REJECT_UNAUTHORIZED.
        rejectUnauthorized: true,
        ALPNProtocols: [protocol],
        // The certificate identifies the node by a URI, not by a DNS name.
        servername: 'runner.internal',
        checkServerIdentity: (_host, { subjectaltname }) =>
          subjectaltname === expected ? undefined : new Error(`it is not the runner ${node}`),
      })
      let timer = setTimeout(() => failConnection(new Error('it does not answer')), handshakeTimeoutMs)
      let connected = false
      let answer = Buffer.alloc(0)

      function fail(error: InstanceUnreachable): void {
        clearTimeout(timer)
        socket.destroy()
        reject(error)
      }

      function failConnection({ message }: Error): void {
        // Once connected, the delay may be the instance's.
        if (!connected) onLost(node)
        fail(new InstanceUnreachable(`The runner ${node} could not be reached: ${message}`, { retryable: true }))
      }

      // Uses `readable` instead of `data`, so that the caller gets a socket that behaves like a new one.
      function read(): void {
        for (let chunk = socket.read(); chunk !== null; chunk = socket.read()) answer = Buffer.concat([answer, chunk])
        const end = answer.indexOf(10)
        if (end < 0) {
          if (answer.length > maxReplyLength) failConnection(new Error('it says too much'))
          return
        }
        const refusal = errorOf(answer.toString('utf8', 0, end) as Reply)
        if (refusal) return void fail(refusal)
        clearTimeout(timer)
        socket.off('readable', read).off('error', failConnection).off('close', closed)
        if (answer.length > end + 1) socket.unshift(answer.subarray(end + 1))
        resolve(socket)
      }

      const closed = () => failConnection(new Error('it closed the connection'))
      socket.on('error', failConnection).on('close', closed).on('readable', read)
      socket.once('secureConnect', () => {
        connected = true
        clearTimeout(timer)
        timer = setTimeout(() => failConnection(new Error('it does not answer')), waitMs)
        socket.setNoDelay(true)
        socket.write(`${line}\n`)
      })
    })
}
