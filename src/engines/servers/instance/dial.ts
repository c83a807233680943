// Connections from an edge to an instance on another node: mutual TLS, one line that names the instance, then its bytes.
import { connect, createSecureContext, type SecureContext, type TLSSocket } from 'node:tls'
import type { ServedInstance } from '../../../services/instances/index.ts'
import { type NodeCertificate, nodeUri } from '../../../tls/internal-ca.ts'
import type { NodeCredentials } from '../../../tls/node-credentials.ts'
import { NotReached } from './failures.ts'

/** The one protocol of the port: what begins here must also know how it goes on. */
export const protocol = 'berth-instance/1'

/** The answer to the line that names an instance: `ok`, or why there is no connection. */
export type Reply = 'ok' | 'gone' | 'unreachable' | `unavailable ${string}`
export const maxReplyLength = 4_096

export type RunnerNode = { node: string; address: string }

/** `line` says whom the connection is for. `waitMs`: how long the instance may take to be started. */
export type Dial = (to: RunnerNode, line: string, waitMs: number) => Promise<TLSSocket>

/** In place of an instance: the runner gives back every byte. */
export const pulseLine = 'pulse'

export const keyOf = ({ deploymentId, term }: Pick<ServedInstance, 'deploymentId' | 'term'>) =>
  `${deploymentId}/${term}`

// A node that is gone or hangs is found within this time. It is near: a handshake takes milliseconds.
const handshakeMs = 2_000

/** `host:port`; an IPv6 address in brackets. */
export function splitAddress(address: string): { host: string; port: number } {
  const at = address.lastIndexOf(':')
  return { host: address.slice(0, at).replace(/^\[|\]$/g, ''), port: Number(address.slice(at + 1)) }
}

function refusalOf(reply: Reply): NotReached | null {
  if (reply === 'ok') return null
  if (reply === 'gone') return new NotReached('The instance is on another node by now.', { again: true })
  if (reply === 'unreachable') return new NotReached('Nothing listens.', { status: 502, again: false })
  return new NotReached(reply.slice('unavailable '.length), { again: false })
}

/** `onLost` is told of nodes that could not be reached. */
export function createDial(credentials: Pick<NodeCredentials, 'current'>, onLost: (node: string) => void): Dial {
  let made: { of: NodeCertificate; context: SecureContext } | null = null

  /** Made once for each certificate: it costs as much as a handshake. */
  function contextOf(own: NodeCertificate): SecureContext {
    if (made?.of !== own) made = { of: own, context: createSecureContext({ ...own, minVersion: 'TLSv1.3' }) }
    return made.context
  }

  return ({ node, address }, line, waitMs) =>
    new Promise((resolve, reject) => {
      const own = credentials.current
      if (!own) return reject(new NotReached('This edge has no certificate for runners yet.', { again: true }))
      const expected = `URI:${nodeUri('runner', node)}`
      const socket = connect({
        ...splitAddress(address),
        secureContext: contextOf(own),
        // Also where NODE_TLS_REJECT_UNAUTHORIZED says otherwise.
        rejectUnauthorized: true,
        ALPNProtocols: [protocol],
        // Who it is, is in the certificate and not a name of the DNS.
        servername: 'runner.internal',
        checkServerIdentity: (_host, { subjectaltname }) =>
          subjectaltname === expected ? undefined : new Error(`it is not the runner ${node}`),
      })
      let timer = setTimeout(() => lose(new Error('it does not answer')), handshakeMs)
      let met = false
      let answer = Buffer.alloc(0)

      function fail(error: NotReached): void {
        clearTimeout(timer)
        socket.destroy()
        reject(error)
      }

      function lose({ message }: Error): void {
        // From here on it may be the instance that takes its time.
        if (!met) onLost(node)
        fail(new NotReached(`The runner ${node} could not be reached: ${message}`, { again: true }))
      }

      // Not by `data`: who gets the socket reads on as from a new one.
      function read(): void {
        for (let chunk = socket.read(); chunk !== null; chunk = socket.read()) answer = Buffer.concat([answer, chunk])
        const end = answer.indexOf(10)
        if (end < 0) {
          if (answer.length > maxReplyLength) lose(new Error('it says too much'))
          return
        }
        const refusal = refusalOf(answer.toString('utf8', 0, end) as Reply)
        if (refusal) return void fail(refusal)
        clearTimeout(timer)
        socket.off('readable', read).off('error', lose).off('close', closed)
        if (answer.length > end + 1) socket.unshift(answer.subarray(end + 1))
        resolve(socket)
      }

      const closed = () => lose(new Error('it closed the connection'))
      socket.on('error', lose).on('close', closed).on('readable', read)
      socket.once('secureConnect', () => {
        met = true
        clearTimeout(timer)
        timer = setTimeout(() => lose(new Error('it does not answer')), waitMs)
        socket.setNoDelay(true)
        socket.write(`${line}\n`)
      })
    })
}
