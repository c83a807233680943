// The connections of a proxy to one instance: kept for further requests, or one for a single request.
import { Agent, type AgentOptions, type ClientRequestArgs } from 'node:http'
import { connect, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Address } from '../../sandbox/sandbox.ts'

type Created = (error: Error | null, stream?: Duplex) => void

/** Opens its connections by a function of its own, unless the request brings one that is open. */
class ConnectingAgent extends Agent {
  readonly #connect: () => Promise<Socket>

  constructor(connect: () => Promise<Socket>, options: AgentOptions) {
    super(options)
    this.#connect = connect
  }

  override createConnection(options: ClientRequestArgs & { opened?: Socket }, created: Created): undefined {
    if (options.opened) return void created(null, options.opened)
    this.#connect().then((socket) => created(null, socket), created)
  }
}

// With `agent: false`, Node sends `connection: close`. A server that answers before it has read the whole body (because
// it is too large) then resets the connection, and the answer is lost.
class FreshAgent extends ConnectingAgent {
  override keepSocketAlive(): boolean {
    return false
  }
}

/** `idleMs`: how long a connection is kept without a request; without it, until the server closes it. */
export function createAgents(connect: () => Promise<Socket>, idleMs?: number) {
  const kept = { keepAlive: true, maxFreeSockets: 64, scheduling: 'lifo', timeout: idleMs } as const
  return { agent: new ConnectingAgent(connect, kept), freshAgent: new FreshAgent(connect, { keepAlive: true }) }
}

export function openSocket(address: Address): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect('socketPath' in address ? { path: address.socketPath } : address)
    socket.once('error', reject)
    socket.once('connect', () => {
      socket.off('error', reject)
      resolve(socket)
    })
  })
}
