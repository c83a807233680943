// Opens connections as promises, and adapts them for `http.request`.
import type { RequestOptions } from 'node:http'
import { type NetConnectOpts, connect as open, type Socket } from 'node:net'
import type { Connect } from '../processes/command.ts'

export function connectTo(target: NetConnectOpts): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>()
  const socket = open({ noDelay: true, ...target })
  socket.once('error', reject)
  socket.once('connect', () => {
    socket.off('error', reject)
    resolve(socket)
  })
  return promise
}

/** Creates connections for `http.request` without an agent. */
export function createConnectionBy(connect: Connect): NonNullable<RequestOptions['createConnection']> {
  return ({ timeout }, done) => {
    connect().then(
      (socket) => {
        // Node listens for the timeout of such a socket but doesn't set it.
        if (timeout !== undefined) socket.setTimeout(timeout)
        done(null, socket)
      },
      (error: Error) => done(error, null as never),
    )
    return undefined
  }
}
